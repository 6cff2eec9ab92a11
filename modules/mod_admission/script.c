/*
 * script.c: one Lua interpreter and what a policy sees from inside it (script.h, policy.h). Lua 5.3 or 5.4.
 */
#include "script.h"

#ifdef ADMISSION_LUA

#include "core/settings.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MOST (16u << 20)
#define INSTRUCTIONS_MOST 1000000

struct script {
  lua_State *lua;
  size_t memory;                 /* bytes in use */
  bool starved;                  /* the last call wanted more than there is, and what is kept is why */
  int function, request_object;  /* references */
  const adm_table *table;        /* of the request that is asked about; NULL in between */
  const policy_request *request;
};

/* ---- bounds ----------------------------------------------------------------------------------------------------- */

static void *allocate(void *world, void *old, size_t old_size, size_t size) {
  script *s = world;
  size_t had = old ? old_size : 0; /* without an old block, old_size is a type */
  if (size == 0) {
    free(old);
    s->memory -= had;
    return NULL;
  }
  if (size > had && s->memory + (size - had) > MEMORY_MOST) { /* Lua collects its garbage, and asks once more */
    s->starved = true;
    return NULL;
  }
  void *fresh = realloc(old, size);
  if (fresh) s->memory += size - had;
  return fresh;
}

/* From now on every instruction is one too many: a pcall in the script catches the error, but cannot go on. */
static void too_long(lua_State *lua, lua_Debug *debug) {
  (void)debug;
  lua_sethook(lua, too_long, LUA_MASKCOUNT, 1);
  luaL_where(lua, 0);
  lua_pushfstring(lua, "more than %d instructions", INSTRUCTIONS_MOST);
  lua_concat(lua, 2);
  lua_error(lua);
}

/* Goes on as the library's own function, which the wrapper has as its upvalue: with its arguments, and in its place where an
 * error says where it happened. */
static int go_on(lua_State *lua) { return lua_tocfunction(lua, lua_upvalueindex(1))(lua); }

/* Finalizers run when Lua collects garbage and when the interpreter ends, and no hook is called in them: one without an end would
 * have none. An object has one when it stands in its metatable as that is set, not later. */
static int set_metatable(lua_State *lua) {
  if (lua_istable(lua, 2)) {
    lua_pushliteral(lua, "__gc");
    if (lua_rawget(lua, 2) != LUA_TNIL) return luaL_error(lua, "a policy has no finalizers (__gc)");
    lua_pop(lua, 1);
  }
  return go_on(lua);
}

/* Nothing, repeated: what else string.rep is asked for ends where the memory does. */
static int repeat(lua_State *lua) {
  size_t text, between;
  luaL_checklstring(lua, 1, &text);
  luaL_optlstring(lua, 3, "", &between);
  if (text + between > 0) return go_on(lua);
  lua_pushliteral(lua, "");
  return 1;
}

/* A function of the table library is one instruction, however many elements it goes over. */
static void bound(lua_State *lua, lua_Integer first, lua_Integer last) {
  if (last >= first && (lua_Unsigned)last - (lua_Unsigned)first >= INSTRUCTIONS_MOST)
    luaL_error(lua, "table.%s of more than %d", lua_tostring(lua, lua_upvalueindex(2)), INSTRUCTIONS_MOST);
}

static int move(lua_State *lua) {
  bound(lua, luaL_checkinteger(lua, 2), luaL_checkinteger(lua, 3));
  return go_on(lua);
}

/* Bounds the length of the list that is the first argument. What says another one than the table's own may say anything, and
 * to the next who asks something else; and that one can be large where there is little: of 1, 2, 4, 8 ... it is the last. */
static lua_Integer bound_list(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  if (luaL_getmetafield(lua, 1, "__len") != LUA_TNIL)
    luaL_error(lua, "table.%s of what has a __len", lua_tostring(lua, lua_upvalueindex(2)));
  lua_Integer length = (lua_Integer)lua_rawlen(lua, 1);
  bound(lua, 1, length);
  return length;
}

static int list(lua_State *lua) {
  bound_list(lua);
  return go_on(lua);
}

/* Where nothing comes of an element, as of an __index in C that says so, memory is no bound. */
static int concat(lua_State *lua) {
  lua_Integer length = bound_list(lua);
  bound(lua, luaL_optinteger(lua, 3, 1), luaL_optinteger(lua, 4, length));
  return go_on(lua);
}

/* Puts a function before that of a library, which is table `library` or, if NULL, the global table. */
static void wrap(lua_State *lua, const char *library, const char *name, lua_CFunction wrapper) {
  lua_getglobal(lua, library ? library : LUA_GNAME);
  lua_getfield(lua, -1, name);
  lua_pushstring(lua, name);
  lua_pushcclosure(lua, wrapper, 2);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 1);
}

static void open_libraries(lua_State *lua) {
  static const luaL_Reg libraries[] = {
    {"_G", luaopen_base}, {LUA_STRLIBNAME, luaopen_string}, {LUA_TABLIBNAME, luaopen_table}, {LUA_MATHLIBNAME, luaopen_math}};
  /* In xpcall's handler, which runs inside the error, no hook is called: a loop in it would have no end. */
  static const char *const removed[] = {"xpcall", "dofile", "loadfile", "load", "loadstring", "require", "print", "collectgarbage", "warn"};
  static const char *const times[] = {"time", "date", "clock", "difftime"};
  static const char *const lists[] = {"insert", "remove", "sort"}; /* unpack ends where the stack does */
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    luaL_requiref(lua, libraries[i].name, libraries[i].func, 1);
    lua_pop(lua, 1);
  }
  for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
    lua_pushnil(lua);
    lua_setglobal(lua, removed[i]);
  }
  wrap(lua, NULL, "setmetatable", set_metatable);
  wrap(lua, LUA_STRLIBNAME, "rep", repeat);
  wrap(lua, LUA_TABLIBNAME, "move", move);
  wrap(lua, LUA_TABLIBNAME, "concat", concat);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) wrap(lua, LUA_TABLIBNAME, lists[i], list);
  lua_getglobal(lua, "string");
  lua_pushnil(lua);
  lua_setfield(lua, -2, "dump");
  lua_newtable(lua); /* os: only what tells the time */
  luaL_requiref(lua, LUA_OSLIBNAME, luaopen_os, 0);
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    lua_getfield(lua, -1, times[i]);
    lua_setfield(lua, -3, times[i]);
  }
  lua_pushvalue(lua, -2);
  lua_setglobal(lua, "os");
  lua_getfield(lua, LUA_REGISTRYINDEX, LUA_LOADED_TABLE); /* where the whole library would be found otherwise */
  lua_pushnil(lua);
  lua_setfield(lua, -2, LUA_OSLIBNAME);
  lua_settop(lua, 0);
}

/* ---- r ---------------------------------------------------------------------------------------------------------- */

static script *script_of(lua_State *lua) { return lua_touserdata(lua, lua_upvalueindex(1)); }

/* What all entries of a group hold, and how many wait. */
static void sum(const adm_table *table, int group, uint64_t *held, uint64_t *waiting) {
  uint32_t entries = adm_table_shape(table).entries;
  uint64_t now_ns = adm_now_ns();
  adm_seen seen;
  *held = *waiting = 0;
  for (uint32_t i = adm_entry_next(table, 0); i < entries; i = adm_entry_next(table, i + 1)) {
    if (!adm_look(table, i, now_ns, &seen) || seen.group != group) continue;
    *held += seen.held;
    *waiting += seen.waiting;
  }
}

static void push_limit(lua_State *lua, uint32_t limit, lua_Integer unit) {
  if (limit == ADM_UNLIMITED) lua_pushnil(lua);
  else lua_pushinteger(lua, (lua_Integer)limit * unit);
}

static adm_group *group_at(const adm_table *table, int group) { return adm_group_at((adm_table *)(uintptr_t)table, group); }

/* r:load("name"): held, limit, waiting; nothing for a group that there is not. */
static int load(lua_State *lua) {
  script *s = script_of(lua);
  const char *name = luaL_checkstring(lua, 2);
  int group = s->table ? adm_group_find(s->table, name) : -1;
  if (group < 0) return 0;
  uint64_t held, waiting;
  sum(s->table, group, &held, &waiting);
  lua_pushinteger(lua, (lua_Integer)held);
  push_limit(lua, group_at(s->table, group)->limit, 1);
  lua_pushinteger(lua, (lua_Integer)waiting);
  return 3;
}

static void push_budget(lua_State *lua, const script *s) {
  uint64_t held, waiting;
  lua_createtable(lua, 0, 2);
  if (!s->table) return;
  sum(s->table, ADM_GROUP_MEMORY, &held, &waiting);
  lua_pushinteger(lua, (lua_Integer)held * ADM_COST_UNIT);
  lua_setfield(lua, -2, "used");
  push_limit(lua, group_at(s->table, ADM_GROUP_MEMORY)->limit, ADM_COST_UNIT);
  lua_setfield(lua, -2, "limit");
}

/* A member of r. After the request, when a script has kept r, there is nothing in it. */
static int member(lua_State *lua) {
  const script *s = script_of(lua);
  const policy_request *r = s->request;
  const char *name = luaL_checkstring(lua, 2);
  if (!r) return luaL_error(lua, "r.%s: the request is over", name);
  const struct { const char *name, *value; } texts[] = {{"host", r->host}, {"file", r->file}, {"uri", r->uri},
    {"handler", r->handler}, {"method", r->method}, {"client", r->client}, {"args", r->args}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (strcmp(name, texts[i].name) != 0) continue;
    lua_pushstring(lua, texts[i].value); /* nil for NULL */
    return 1;
  }
  if (strcmp(name, "load") == 0) lua_pushvalue(lua, lua_upvalueindex(2));
  else if (strcmp(name, "budget") == 0) push_budget(lua, s);
  else return luaL_error(lua, "r.%s: there is no such member", name);
  return 1;
}

/* The one r, whose members are those of the request at hand. */
static void make_request_object(script *s) {
  lua_State *lua = s->lua;
  lua_newuserdata(lua, 1);
  lua_createtable(lua, 0, 2);
  lua_pushlightuserdata(lua, s);
  lua_pushlightuserdata(lua, s);
  lua_pushcclosure(lua, load, 1);
  lua_pushcclosure(lua, member, 2);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  s->request_object = luaL_ref(lua, LUA_REGISTRYINDEX);
}

/* ---- the answer ------------------------------------------------------------------------------------------------- */

/* The value at the top, as a text for a parser or a message. */
static const char *value_text(lua_State *lua) { return luaL_tolstring(lua, -1, NULL); }

static void read_group(lua_State *lua, const script *s, policy_answer *answer) {
  const char *name = value_text(lua);
  bool none = strcmp(name, "none") == 0;
  if (strlen(name) >= sizeof answer->group) luaL_error(lua, "group: `%s` is too long for a name", name);
  if (!none && s->table && !adm_group_is_configured(s->table, name)) luaL_error(lua, "group: there is no `%s`", name);
  strcpy(answer->group, name);
  answer->has_group = true;
  lua_pop(lua, 1);
}

/* Whole numbers as Lua may have them: 4 and 4.0 are the same limit. */
static const char *number_text(lua_State *lua) {
  int whole;
  lua_Integer number = lua_tointegerx(lua, -1, &whole);
  if (lua_type(lua, -1) != LUA_TNUMBER || !whole) return value_text(lua);
  return lua_pushfstring(lua, "%I", (LUAI_UACINT)number);
}

static void read_cost(lua_State *lua, policy_answer *answer) {
  const char *text = number_text(lua);
  answer->cost = 0;
  if (strcmp(text, "none") != 0 && !adm_size_read(text, &answer->cost))
    luaL_error(lua, "cost: `%s` is no size such as \"200M\"", text);
  answer->has_cost = true;
  lua_pop(lua, 1);
}

static void read_limit(lua_State *lua, policy_answer *answer) {
  const char *text = number_text(lua);
  if (!adm_limit_read(text, &answer->limit)) luaL_error(lua, "limit: `%s` is no " ADM_LIMIT_WORDS ", or \"none\"", text);
  answer->has_limit = true;
  lua_pop(lua, 1);
}

/* Reads what is at the top as the answer's part of this name. */
static void read_part(lua_State *lua, const script *s, const char *name, policy_answer *answer) {
  if (lua_isnil(lua, -1)) return;
  if (strcmp(name, "group") == 0) read_group(lua, s, answer);
  else if (strcmp(name, "cost") == 0) read_cost(lua, answer);
  else if (strcmp(name, "limit") == 0) read_limit(lua, answer);
  else luaL_error(lua, "%s: an answer has group, cost and limit", name);
}

/* Three values, or a table with their names. */
static void read_answer(lua_State *lua, const script *s, policy_answer *answer) {
  static const char *const parts[] = {"group", "cost", "limit"};
  if (!lua_istable(lua, 1)) {
    for (int i = 0; i < 3; i++) {
      lua_pushvalue(lua, i + 1);
      read_part(lua, s, parts[i], answer);
      lua_pop(lua, 1);
    }
    return;
  }
  for (lua_pushnil(lua); lua_next(lua, 1); lua_pop(lua, 1)) {
    if (lua_type(lua, -2) != LUA_TSTRING) luaL_error(lua, "an answer has group, cost and limit by name");
    read_part(lua, s, lua_tostring(lua, -2), answer);
  }
}

/* ---- calls, protected: an error in any of this comes back as a message ------------------------------------------- */

typedef struct loading {
  script *script;
  const char *name, *text;
  size_t length;
} loading;

static int load_protected(lua_State *lua) {
  loading *l = lua_touserdata(lua, 1);
  lua_settop(lua, 0);
  open_libraries(lua);
  if (luaL_loadbufferx(lua, l->text, l->length, l->name, "t") != LUA_OK) return lua_error(lua);
  lua_sethook(lua, too_long, LUA_MASKCOUNT, INSTRUCTIONS_MOST);
  lua_call(lua, 0, 0);
  if (lua_getglobal(lua, "admission") != LUA_TFUNCTION)
    return luaL_error(lua, "no function admission(r) is defined");
  l->script->function = luaL_ref(lua, LUA_REGISTRYINDEX);
  make_request_object(l->script);
  return 0;
}

typedef struct asking {
  script *script;
  policy_answer *answer;
} asking;

static int ask_protected(lua_State *lua) {
  asking *a = lua_touserdata(lua, 1);
  lua_settop(lua, 0);
  lua_sethook(lua, too_long, LUA_MASKCOUNT, INSTRUCTIONS_MOST);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, a->script->function);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, a->script->request_object);
  lua_call(lua, 1, 3);
  read_answer(lua, a->script, a->answer);
  return 0;
}

static int collect_protected(lua_State *lua) {
  lua_gc(lua, LUA_GCCOLLECT, 0);
  return 0;
}

/* Calls in protected mode; false with the message, in one line. */
static bool protect(script *s, lua_CFunction function, void *world, char *error) {
  lua_pushcfunction(s->lua, function);
  lua_pushlightuserdata(s->lua, world);
  bool good = lua_pcall(s->lua, 1, 0, 0) == LUA_OK;
  if (!good) {
    const char *message = lua_type(s->lua, -1) == LUA_TSTRING ? lua_tostring(s->lua, -1) : "an error that is no text";
    snprintf(error, ADM_ERROR, "%s", message);
    for (char *at = error; *at; at++)
      if ((unsigned char)*at < ' ' || *at == 127) *at = ' ';
  }
  lua_settop(s->lua, 0);
  return good;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

script *script_new(const char *path, const char *text, size_t length, char *error) {
  char name[64]; /* Lua shows no more of it */
  const char *slash = strrchr(path, '/');
  script *s = calloc(1, sizeof *s);
  if (s) s->lua = lua_newstate(allocate, s);
  if (!s || !s->lua) {
    snprintf(error, ADM_ERROR, "no memory for an interpreter");
    free(s);
    return NULL;
  }
  snprintf(name, sizeof name, "@%s", slash ? slash + 1 : path);
  if (protect(s, load_protected, &(loading){s, name, text, length}, error)) return s;
  script_free(s);
  return NULL;
}

/* Whether what the script keeps is what memory was short of, or only what it was about to make of this one request: a client
 * may have chosen how large that was, and must not thereby choose that the script forgets what it knows of all others. */
static bool keeps_too_much(script *s) {
  char unread[ADM_ERROR];
  return !protect(s, collect_protected, NULL, unread) || s->memory > MEMORY_MOST / 2;
}

int script_ask(script *s, const adm_table *table, const policy_request *request, policy_answer *answer, char *error) {
  *answer = (policy_answer){.has_group = false};
  s->table = table;
  s->request = request;
  s->starved = false;
  bool good = protect(s, ask_protected, &(asking){s, answer}, error);
  s->table = NULL;
  s->request = NULL;
  if (good) return answer->has_group || answer->has_cost || answer->has_limit;
  *answer = (policy_answer){.has_group = false};
  s->starved = s->starved && keeps_too_much(s);
  return -1;
}

bool script_starved(const script *s) { return s->starved; }

void script_free(script *s) {
  if (!s) return;
  lua_close(s->lua);
  free(s);
}

#else

typedef int script_needs_lua; /* without Lua this file is empty, which C does not allow */

#endif
