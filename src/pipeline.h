/*-------------------------------------------------------------------------
 *
 * pipeline.h
 *		Stored pipelines.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/pipeline.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_PIPELINE_H
#define CDC_PIPELINE_H

#include "apply.h"
#include "catalog.h"
#include "datatype/timestamp.h"

/* cdc.pipeline */
#define Natts_cdc_pipeline					18
#define Anum_cdc_pipeline_name				1
#define Anum_cdc_pipeline_created_at		2
#define Anum_cdc_pipeline_owner				3
#define Anum_cdc_pipeline_target			4
#define Anum_cdc_pipeline_keep_runs			5
#define Anum_cdc_pipeline_ignore_null		6
#define Anum_cdc_pipeline_deduplicate		7
#define Anum_cdc_pipeline_append			8
#define Anum_cdc_pipeline_history			9
#define Anum_cdc_pipeline_target_name		10
#define Anum_cdc_pipeline_query				11
#define Anum_cdc_pipeline_search_path		12
#define Anum_cdc_pipeline_keys				13
#define Anum_cdc_pipeline_filter			14
#define Anum_cdc_pipeline_sequence_by		15
#define Anum_cdc_pipeline_soft_delete		16
#define Anum_cdc_pipeline_history_exclude	17
#define Anum_cdc_pipeline_max_deletes		18
#define Anum_cdc_pipeline_nowait			19

/* cdc.pipeline_run */
#define Natts_cdc_pipeline_run				12
#define Anum_cdc_pipeline_run_name			1
#define Anum_cdc_pipeline_run_run_id		2
#define Anum_cdc_pipeline_run_started_at	3
#define Anum_cdc_pipeline_run_finished_at	4
#define Anum_cdc_pipeline_run_mode			5
#define Anum_cdc_pipeline_run_ranges		6
#define Anum_cdc_pipeline_run_inserted		7
#define Anum_cdc_pipeline_run_updated		8
#define Anum_cdc_pipeline_run_deleted		9
#define Anum_cdc_pipeline_run_unchanged		10
#define Anum_cdc_pipeline_run_missing		11
#define Anum_cdc_pipeline_run_stale			12

/* One row of cdc.pipeline */
typedef struct CdcPipeline
{
	char	   *name;
	TimestampTz created_at;
	Oid			owner;			/* with whose rights it runs */
	char	   *target_name;	/* qualified name when it was made */
	char	   *search_path;	/* setting to run with */
	int32		keep_runs;		/* of its history */
	CdcApplyOptions options;	/* without what belongs to a single run */
}			CdcPipeline;

/* What to go back to after something was done with a pipeline's rights */
typedef struct CdcPipelineRights
{
	Oid			userid;
	int			sec_context;
	int			guc_nest_level;
}			CdcPipelineRights;

/* from pipeline.c */
extern Oid	cdc_pipeline_catalog(CdcCatalogRel which);
extern void cdc_pipeline_lock(const char *name, bool nowait);
extern void cdc_pipeline_require(const char *name, CdcPipeline * pipeline);
extern void cdc_pipeline_check_owner(const CdcPipeline * pipeline);
extern char *cdc_pipeline_relation_name(Oid relid);
extern List *cdc_pipeline_list(void);
extern char *cdc_pipeline_problem(const CdcPipeline * pipeline, char **hint);

/* from pipeline_run.c */
extern void cdc_pipeline_enter(const CdcPipeline * pipeline,
							   CdcPipelineRights * rights);
extern void cdc_pipeline_leave(const CdcPipelineRights * rights);

#endif							/* CDC_PIPELINE_H */
