/*
 * script.h: one Lua interpreter with one compiled policy in it, for policy.c, which keeps a few of them.
 *
 * Everything the script can do to its process is bounded here: memory, instructions, and the libraries it finds. It
 * reads no files.
 */
#ifndef ADMISSION_SCRIPT_H
#define ADMISSION_SCRIPT_H

#include "policy.h"

typedef struct script script;

/* Compiles a text and runs it once, which defines `admission`; NULL with `error` (ADM_ERROR bytes). */
script *script_new(const char *path, const char *text, size_t length, char *error);

/* Calls `admission`. 1: it answered; 0: it said nil; -1: with `error`. */
int script_ask(script *script, const adm_table *table, const policy_request *request, policy_answer *answer, char *error);

/* After an error: whether memory was short, and the script has kept so much (half of what it may have) that it would be again. */
bool script_starved(const script *script);

void script_free(script *script);

#endif
