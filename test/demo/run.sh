#!/bin/bash
#
# The demo, on a private server: first a small history with every way to read
# it, then the packages of this machine.  Ends with an error if the copies that
# are made from changelogs are not equal to their sources.

. "$(dirname "$0")/../setup.sh"

cdc_needs=()
cdc_needs_index=1
cdc_private test/demo/run.sh "$@"

cdc_build
cdc_server

demo()
{
	psql -XqP pager=off -v ON_ERROR_STOP=1 "$@"
}

echo
echo "==== Part 1: a small history ===="
demo < test/demo/primer.sql

# What dpkg has installed and what the package index offers, as columns
# separated by tabs
dpkg-query -W -f='${db:Status-Status}\t${Package}\t${Architecture}\t${Version}\t${Section}\t${Priority}\t${Installed-Size}\t${Maintainer}\t${binary:Summary}\n' |
	sed -n 's/\\/\\\\/g; s/^installed\t//p' > "$CDC_WORK/installed.tsv"
apt-cache dumpavail | awk '
	BEGIN { RS = ""; FS = "\n"; OFS = "\t" }
	{
		delete field
		for (i = 1; i <= NF; i++)
			if (match($i, /^[A-Za-z-]+: /))
				field[substr($i, 1, RLENGTH - 2)] = substr($i, RLENGTH + 1)
		if (field["Package"] == "" || seen[field["Package"], field["Architecture"]]++)
			next
		summary = field["Description"] != "" ? field["Description"] : field["Description-en"]
		print field["Package"], field["Architecture"], field["Version"],
			field["Section"], field["Priority"], field["Installed-Size"],
			field["Maintainer"], summary
	}' | sed 's/\\/\\\\/g' > "$CDC_WORK/index.tsv"

echo
echo "==== Part 2: the packages of this machine ===="
demo -v installed="$CDC_WORK/installed.tsv" -v index="$CDC_WORK/index.tsv" \
	< test/demo/packages.sql

cdc_server_stop
