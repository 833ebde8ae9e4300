# Set-up shared by the test runner, the demo and the benchmarks.  Sourced.
#
# A script that sources this file and calls "cdc_private NAME..." runs twice.
#
# First as the user who called it.  It then installs the Debian packages that
# are missing, copies the tree into a fresh directory, and runs itself again
# from there.  When that ends, in whatever way, it stops what was started and
# removes the directory.
#
# The second time as an unprivileged user, since PostgreSQL refuses root: as
# "postgres" if root called it, and otherwise as the caller.  Nothing outside
# the private directory is written, and no server but the private one is
# talked to.
#
# Settings, from the environment:
#	PG_CONFIG	the pg_config of the server to use; the default is the newest
#				server in Debian's layout, or else Debian's current one
#	CDC_TMPDIR	where the private directory is made, /tmp by default
#	CDC_KEEP	if set, the private directory is not removed

set -euo pipefail

cdc_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

cdc_die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# ----------
# The outer run
# ----------

# Runs a command as root.
cdc_as_root()
{
	if [ "$(id -u)" = 0 ]
	then
		"$@"
	elif command -v sudo > /dev/null
	then
		sudo "$@"
	else
		cdc_die "root or sudo is needed to run: $*"
	fi
}

cdc_apt_get()
{
	cdc_as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
		apt-get -qq -y -o DPkg::Lock::Timeout=600 "$@"
}

cdc_installed()
{
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2> /dev/null || true)" = installed ]
}

# Prints the newest major version (15 or later) with both a server and its
# development files in Debian's layout; nothing if there is none.
cdc_installed_major()
{
	local dir

	for dir in /usr/lib/postgresql/*/
	do
		if [ -x "$dir/bin/postgres" ] && [ -f "$dir/lib/pgxs/src/makefiles/pgxs.mk" ]
		then
			basename "$dir"
		fi
	done | grep -xE '1[5-9]|[2-9][0-9]' | sort -n | tail -n 1 || true
}

# Prints the major version that the distribution's package "postgresql" stands
# for; nothing if apt has no lists.
cdc_distribution_major()
{
	{ apt-cache depends postgresql 2> /dev/null || true; } |
		sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1
}

cdc_update()
{
	echo "Getting the package lists"
	cdc_apt_get update > "$cdc_apt_log" 2>&1 ||
		{ cat "$cdc_apt_log" >&2; cdc_die "apt-get update failed"; }
}

# Installs packages.  What is in the package lists may be too old to be
# downloaded still, so a failure is tried again with new lists.
cdc_install()
{
	echo "Installing packages: $*"
	if ! cdc_apt_get install --no-install-recommends "$@" > "$cdc_apt_log" 2>&1
	then
		cdc_update
		cdc_apt_get install --no-install-recommends "$@" > "$cdc_apt_log" 2>&1 ||
			{ cat "$cdc_apt_log" >&2; cdc_die "could not install: $*"; }
	fi
}

# The server's package makes and starts a cluster when it is installed.  That
# is not ours to leave behind, so it is told not to.
cdc_install_server()
{
	local dropin=/etc/postgresql-common/createcluster.d/zz_cdc_changelog.conf
	local status=0

	cdc_installed postgresql-common || cdc_install postgresql-common
	cdc_as_root mkdir -p "${dropin%/*}"
	echo 'create_main_cluster = false' | cdc_as_root tee "$dropin" > /dev/null
	(cdc_install "$@") || status=$?
	cdc_as_root rm -f "$dropin"
	[ "$status" = 0 ] || exit "$status"
}

# Sees to it that a server, its development files and the named packages are
# there, and sets PG_CONFIG.
cdc_packages()
{
	local major package
	local missing=()

	cdc_apt_log=$cdc_work/apt.log

	if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null
	then
		PG_CONFIG=$(command -v "${PG_CONFIG:-pg_config}") ||
			cdc_die "this is not a Debian system: install PostgreSQL 15 or newer with its development files, a C compiler, make, prove and IPC::Run, and set PG_CONFIG"
		return
	fi

	if [ -z "${PG_CONFIG:-}" ]
	then
		major=$(cdc_installed_major)
		[ -n "$major" ] || major=$(cdc_distribution_major)
		if [ -z "$major" ]
		then
			cdc_update
			major=$(cdc_distribution_major)
		fi
		[ -n "$major" ] || cdc_die "apt knows no package \"postgresql\""
		[ "$major" -ge 15 ] || cdc_die "PostgreSQL 15 or newer is needed, this distribution has $major"
		PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config
		for package in "postgresql-$major" "postgresql-client-$major"
		do
			cdc_installed "$package" || missing+=("$package")
		done
		if [ ${#missing[@]} -gt 0 ]
		then
			cdc_install_server "${missing[@]}"
		fi
		missing=()
		set -- "postgresql-server-dev-$major" "$@"
	fi
	PG_CONFIG=$(command -v "$PG_CONFIG") || cdc_die "no such program: $PG_CONFIG"

	for package in gcc libc6-dev make "$@"
	do
		cdc_installed "$package" || missing+=("$package")
	done
	if [ ${#missing[@]} -gt 0 ]
	then
		cdc_install "${missing[@]}"
	fi

	# lists as the archive has them, or compressed
	if [ -n "${cdc_needs_index:-}" ] && ! compgen -G '/var/lib/apt/lists/*_Packages*' > /dev/null
	then
		cdc_update
	fi

	cdc_optional_packages
}

# Installs those of the server's extension packages in cdc_wants that there
# are; the script has to do without the others.
cdc_optional_packages()
{
	local major package
	local missing=()

	[ -n "${cdc_wants:-}" ] || return 0
	major=$(sed -n 's#^/usr/lib/postgresql/\([0-9]*\)/bin/pg_config$#\1#p' <<< "$PG_CONFIG")
	[ -n "$major" ] || return 0
	for package in "${cdc_wants[@]/#/postgresql-$major-}"
	do
		if ! cdc_installed "$package" && [ -n "$(apt-cache madison "$package" 2> /dev/null)" ]
		then
			missing+=("$package")
		fi
	done
	[ ${#missing[@]} = 0 ] || (cdc_install "${missing[@]}") ||
		echo "Going on without them" >&2
}

# Stops every server whose data directory is in the private directory.  A
# server's working directory is its data directory, which tells it from an
# unrelated process that was given the number of a server that has died.
cdc_stop_servers()
{
	local file pid try

	while IFS= read -r file
	do
		pid=$(head -n 1 "$file")
		[ "$(readlink "/proc/$pid/cwd" 2> /dev/null)" = "${file%/*}" ] || continue
		kill -QUIT "$pid" 2> /dev/null || continue
		for try in $(seq 100)
		do
			# gone, or a zombie that nobody has waited for
			[ -n "$(readlink "/proc/$pid/cwd" 2> /dev/null)" ] || continue 2
			sleep 0.1
		done
		kill -KILL "$pid" 2> /dev/null || true
	done < <(find "$cdc_work" -name postmaster.pid 2> /dev/null)
}

cdc_cleanup()
{
	local status=$?
	local try

	trap - EXIT
	trap '' INT TERM HUP
	if [ -n "$cdc_child" ] && kill -TERM -- "-$cdc_child" 2> /dev/null
	then
		for try in $(seq 100)
		do
			kill -0 -- "-$cdc_child" 2> /dev/null || break
			sleep 0.1
		done
		kill -KILL -- "-$cdc_child" 2> /dev/null || true
	fi
	cdc_stop_servers
	if [ -n "${CDC_KEEP:-}" ]
	then
		echo "Kept: $cdc_work" >&2
	else
		rm -rf "$cdc_work"
	fi
	exit "$status"
}

# Makes the private directory and runs the calling script, with its arguments,
# in it.  Does not return.
cdc_outer()
{
	local script=$1
	local status=0
	local as_user=()
	shift

	# /tmp and not TMPDIR, which may be a directory of the caller's alone
	cdc_child=
	cdc_work=$(mktemp -d "${CDC_TMPDIR:-/tmp}/cdc_changelog.XXXXXX")
	trap cdc_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP

	cdc_packages "${cdc_needs[@]}"

	mkdir "$cdc_work/src" "$cdc_work/home" "$cdc_work/socket"
	tar -C "$cdc_top" -cf - --exclude-vcs --exclude='*.o' --exclude='*.bc' \
		--exclude='*.so' --exclude=./results --exclude=./output_iso \
		--exclude=./tmp_check --exclude=./.test . | tar -C "$cdc_work/src" -xf -
	chmod 755 "$cdc_work"
	if [ "$(id -u)" = 0 ]
	then
		id postgres > /dev/null 2>&1 || cdc_die "there is no user \"postgres\" to run the server as"
		chown -R postgres: "$cdc_work"
		as_user=(setpriv --reuid=postgres --regid="$(id -g postgres)" --init-groups)
	fi

	# Job control gives the child a process group of its own, which can be
	# ended as a whole, and leaves interrupts to this shell.
	set -m
	(
		cd "$cdc_work/src"
		unset MAKEFLAGS MFLAGS MAKELEVEL TMPDIR
		for name in $(compgen -A export PG)
		do
			# not PG_CONFIG, nor what is meant for the TAP tests
			[[ $name == PG_* ]] || unset "$name"
		done
		exec "${as_user[@]}" env HOME="$cdc_work/home" USER="$(id -un)" \
			LC_ALL=C.UTF-8 PG_CONFIG="$PG_CONFIG" CDC_WORK="$cdc_work" \
			bash "$cdc_work/src/$script" "$@" < /dev/null
	) &
	cdc_child=$!
	set +m
	wait "$cdc_child" || status=$?
	if [ -n "${cdc_result:-}" ] && [ -f "$cdc_work/result" ]
	then
		cp "$cdc_work/result" "$cdc_top/$cdc_result"
	fi
	exit "$status"
}

# ----------
# The inner run
# ----------

# Tells whether the server's installation can be copied: it is one tree, or laid
# out as Debian does, and not mixed with other programs.  Sets cdc_server_root
# to the directory that all of it is in, and cdc_server_dirs to what is to be
# copied from there.
cdc_can_copy_server()
{
	local bindir dir

	bindir=$(readlink -f "$("$PG_CONFIG" --bindir)")
	cdc_server_root=$(dirname "$bindir")
	cdc_server_dirs=("$cdc_server_root")
	case $cdc_server_root in
		/ | /usr | /usr/local) return 1 ;;
	esac
	for dir in --pkglibdir --sharedir --includedir-server
	do
		dir=$(readlink -f "$("$PG_CONFIG" "$dir")")
		[[ $dir == "${cdc_server_dirs[0]}"/* ]] || cdc_server_dirs+=("$dir")
		while [ "$cdc_server_root" != / ] && [[ $dir != "$cdc_server_root"/* ]]
		do
			cdc_server_root=$(dirname "$cdc_server_root")
		done
	done
	[ "$cdc_server_root" != / ]
}

# Copies the server's installation and sets PG_CONFIG to the copy's: PostgreSQL
# finds its files relative to its programs.  This is how an extension can be
# tried without a trace where the server cannot be told to look for extensions
# elsewhere.
cdc_copy_server()
{
	local bindir dir copy

	bindir=$(readlink -f "$("$PG_CONFIG" --bindir)")
	for dir in "${cdc_server_dirs[@]}"
	do
		copy=$CDC_WORK/server${dir#"$cdc_server_root"}
		mkdir -p "$copy"
		cp -a "$dir/." "$copy"
	done
	PG_CONFIG=$CDC_WORK/server${bindir#"$cdc_server_root"}/pg_config
}

# Builds the extension with the given settings for make and installs it in the
# private directory.
cdc_build()
{
	local stage=$CDC_WORK/stage

	cdc_settings=
	if "$("$PG_CONFIG" --bindir)/postgres" -C extension_destdir -D "$CDC_WORK/data" > /dev/null 2>&1
	then
		# a feature of Debian's packages before 18
		cdc_settings="extension_destdir = '$stage'"
	elif cdc_can_copy_server
	then
		cdc_copy_server
		stage=
	elif "$("$PG_CONFIG" --bindir)/postgres" -C extension_control_path -D "$CDC_WORK/data" > /dev/null 2>&1
	then
		# 18 and newer; but pg_upgrade does not look there for libraries
		cdc_settings="extension_control_path = '$stage$("$PG_CONFIG" --sharedir):\$system'
dynamic_library_path = '$stage$("$PG_CONFIG" --pkglibdir):\$libdir'"
	else
		cdc_die "do not know how to use $PG_CONFIG without installing into it"
	fi
	cdc_make=(make -s with_llvm=no PG_CONFIG="$PG_CONFIG")
	"${cdc_make[@]}" -j "$(nproc)" "$@" all
	"${cdc_make[@]}" "$@" install DESTDIR="$stage" > /dev/null
}

# Makes the private server and starts it.  Arguments: lines for postgresql.conf.
# The PG* variables of the environment then lead to it.
cdc_server()
{
	local bindir

	bindir=$("$PG_CONFIG" --bindir)
	export PATH=$bindir:$PATH
	export PGHOST=$CDC_WORK/socket PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	export PGDATA=$CDC_WORK/data
	{
		printf '%s\n' "listen_addresses = ''" \
			"unix_socket_directories = '$CDC_WORK/socket'" \
			"fsync = off" "log_line_prefix = '%m [%p] %q%a '" \
			"timezone = 'UTC'" "$cdc_settings" "$@"
	} >> "$PGDATA/postgresql.conf"
	cdc_server_start
}

cdc_server_start()
{
	pg_ctl -s -w -l "$CDC_WORK/server.log" start ||
		{ tail -n 50 "$CDC_WORK/server.log" >&2; cdc_die "the private server did not start"; }
}

cdc_server_stop()
{
	pg_ctl -s -w -m fast stop
}

# Makes the data directory.  Before cdc_build(), which asks the server for its
# settings, and it only answers where there is one.
cdc_initdb()
{
	"$("$PG_CONFIG" --bindir)/initdb" -D "$CDC_WORK/data" -U postgres -A trust -N \
		--encoding=UTF8 --no-locale > "$CDC_WORK/initdb.log" 2>&1 ||
		{ cat "$CDC_WORK/initdb.log" >&2; cdc_die "initdb failed"; }
}

# Goes on only in the private copy.  Arguments: the calling script, relative to
# the top, and its arguments.  cdc_needs lists the packages the script needs
# besides PostgreSQL, a compiler and make, and cdc_wants the extensions that it
# can do without, by the last part of their package's name; cdc_needs_index is
# set if it needs apt's package lists.  What the script leaves in
# $CDC_WORK/result goes to the file cdc_result, relative to the top.
cdc_private()
{
	if [ -z "${CDC_WORK:-}" ]
	then
		cdc_outer "$@"
	fi
	cd "$CDC_WORK/src"
	cdc_initdb
}
