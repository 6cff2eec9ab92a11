/* memhog: a CGI program that takes memory, fills it, answers OK and ends.
 *
 * It stands for a web application of a known size. It keeps nothing, writes nothing and knows nothing of webdyno; README.md
 * says how to use it alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define DEFAULT_BYTES "200M"
#define DEFAULT_PASSES "1"
#define MAX_PASSES 10000

/* The only way out. The status line is left to the server for 200: a CGI program names other ones only. */
static _Noreturn void answer(const char *status, const char *body)
{
    if (status)
        printf("Status: %s\r\n", status);
    printf("Content-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static _Noreturn void fail(const char *status, const char *what, const char *detail)
{
    char body[512];
    snprintf(body, sizeof body, "memhog: %s: %s\n", what, detail);
    answer(status, body);
}

/* Reads a number with an optional K, M or G (powers of 1024) that ends at `end`; 0 when it is none. */
static int quantity(const char *text, const char *end, uintmax_t *value)
{
    char *rest;
    unsigned shift = 0;

    if (*text < '0' || *text > '9')
        return 0;
    errno = 0;
    *value = strtoumax(text, &rest, 10);
    if (errno)
        return 0;
    if (rest < end) {
        switch (*rest++) {
        case 'K': case 'k': shift = 10; break;
        case 'M': case 'm': shift = 20; break;
        case 'G': case 'g': shift = 30; break;
        default: return 0;
        }
    }
    if (rest != end || *value > (UINTMAX_MAX >> shift))
        return 0;
    *value <<= shift;
    return 1;
}

/* The setting `key` of the query string if it is there, else of the environment, else the default. */
static uintmax_t setting(const char *key, const char *variable, const char *otherwise, uintmax_t max)
{
    const char *query = getenv("QUERY_STRING"), *text = getenv(variable);
    const char *status = "500 Internal Server Error", *name = variable, *end = NULL;
    size_t length = strlen(key);
    uintmax_t value;

    if (!text || !*text)
        text = otherwise;
    for (const char *part = query; part && *part; part += strcspn(part, "&"), part += *part == '&') {
        if (strncmp(part, key, length) == 0 && part[length] == '=') {
            text = part + length + 1;
            end = text + strcspn(text, "&");
            name = key;
            status = "400 Bad Request";
        }
    }
    if (!end)
        end = text + strlen(text);
    if (!quantity(text, end, &value) || value > max)
        fail(status, name, "must be a whole number, K, M or G may follow, and not too large");
    return value;
}

/* Waits until no other request holds the lock; the end of the process gives it back. The default is this program's own
 * file: it exists, everyone who runs it may open it, and flock needs no permission to write. */
static void lock(void)
{
    const char *path = getenv("MEMHOG_LOCK");
    int file;

    if (!path || !*path)
        path = "/proc/self/exe";
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT)
        file = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        fail("500 Internal Server Error", path, strerror(errno));
    while (flock(file, LOCK_EX) != 0)
        if (errno != EINTR)
            fail("500 Internal Server Error", path, strerror(errno));
}

int main(void)
{
    const char *path_info = getenv("PATH_INFO");
    const uintmax_t bytes = setting("bytes", "MEMHOG_BYTES", DEFAULT_BYTES, SIZE_MAX / 2);
    const uintmax_t passes = setting("passes", "MEMHOG_PASSES", DEFAULT_PASSES, MAX_PASSES);
    unsigned char *memory;

    if (path_info && strcmp(path_info, "/lock") == 0)
        lock();
    else if (path_info && *path_info)
        fail("404 Not Found", path_info, "only /lock is known");

    memory = malloc(bytes ? bytes : 1);
    if (!memory)
        fail("500 Internal Server Error", "cannot allocate memory", strerror(errno));
    /* Every byte is written: it makes each page real, and it is work for the CPU, as an application's own would be. */
    for (uintmax_t pass = 0; pass < passes; pass++) {
        memset(memory, (int)(pass + 1), bytes);
        /* Nobody reads the bytes; without this the compiler may leave the writing out. */
        __asm__ volatile("" : : "r"(memory) : "memory");
    }
    answer(NULL, "OK\n");
}
