/*
 * step.h: the steps at which tests end a process (ADM_STEPS), where what is shared is half changed. In the module they are nothing.
 */
#ifndef ADMISSION_STEP_H
#define ADMISSION_STEP_H

#ifdef ADM_STEPS
void adm_step(const char *where);
#define STEP(where) adm_step(where)
#else
#define STEP(where) ((void)0)
#endif

#endif
