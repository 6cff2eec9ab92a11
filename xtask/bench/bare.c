/*
 * The bare loop: what any load generator on epoll has to pay for, and nothing else.
 *
 * One thread; nothing is parsed after the first answer, whose length all others must have; no clock in the loop unless
 * there is a timetable to keep. It measures no latency and checks no status: a bound to compare with, not a tool.
 * Prints how many answers were complete. Built with `gcc -O2` by `cargo xtask bench`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 256 * 1024, EVENTS = 1024 };

struct connection {
    int fd;
    int sent;    /* only with a connection per request: whether the request is out */
    size_t left; /* bytes of the answer that have not come */
};

static struct sockaddr_in server;
static char request[512];
static size_t request_length;
static size_t answer_length;
static char buffer[BUFFER];
static struct connection *connections;
static int count;
static int epoll;
static unsigned long done;
static volatile sig_atomic_t stop;

static void die(const char *what)
{
    fprintf(stderr, "bare: %s: %s\n", what, errno ? strerror(errno) : "not as expected");
    exit(1);
}

static void on_alarm(int signal)
{
    (void)signal;
    stop = 1;
}

static void start_alarm(double seconds)
{
    struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART: waiting ends too */
    struct itimerval timer = {{0, 0}, {(time_t)seconds, (suseconds_t)((seconds - (time_t)seconds) * 1e6)}};
    if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL))
        die("alarm");
}

static int connected(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    if (fd < 0)
        die("socket");
    if (connect(fd, (struct sockaddr *)&server, sizeof server) && errno != EINPROGRESS)
        die("connect");
    return fd;
}

/* One request by hand: how many bytes the server answers with. */
static void learn(void)
{
    int fd = connected(0);
    size_t got = 0;
    if (send(fd, request, request_length, MSG_NOSIGNAL) != (ssize_t)request_length)
        die("first send");
    while (got < BUFFER - 1) {
        ssize_t now = recv(fd, buffer + got, BUFFER - 1 - got, 0);
        if (now <= 0)
            die("first answer");
        got += (size_t)now;
        buffer[got] = 0;
        char *end = strstr(buffer, "\r\n\r\n");
        char *length = strcasestr(buffer, "\r\nContent-Length:");
        if (!end)
            continue;
        errno = 0;
        if (strncmp(buffer, "HTTP/1.1 200 ", 13) || !length || length > end)
            die("first answer");
        answer_length = (size_t)(end + 4 - buffer) + strtoul(length + 17, NULL, 10);
        close(fd);
        return;
    }
    die("header of the first answer");
}

/* The request goes out whole: it is small, and nothing else waits on this connection. */
static inline void send_request(struct connection *it)
{
    if (send(it->fd, request, request_length, MSG_NOSIGNAL) != (ssize_t)request_length)
        die("send");
    it->left = answer_length;
}

/* What has come so far; 1 when the answer is complete. */
static inline int receive(struct connection *it)
{
    ssize_t got = recv(it->fd, buffer, BUFFER, 0);
    if (got <= 0 || (size_t)got > it->left)
        die("answer");
    it->left -= (size_t)got;
    if (it->left)
        return 0;
    done++;
    return 1;
}

static void watch(struct connection *it, int what, unsigned events)
{
    struct epoll_event event = {.events = events, .data.ptr = it};
    if (epoll_ctl(epoll, what, it->fd, &event))
        die("epoll_ctl");
}

static int wait_for(struct epoll_event *events, const struct timespec *at_most)
{
    int n = at_most ? epoll_pwait2(epoll, events, EVENTS, at_most, NULL) : epoll_wait(epoll, events, EVENTS, -1);
    if (n < 0 && errno != EINTR)
        die("epoll_wait");
    return n;
}

static void connect_all(void)
{
    for (int i = 0; i < count; i++) {
        connections[i].fd = connected(0);
        watch(&connections[i], EPOLL_CTL_ADD, EPOLLIN);
    }
}

static void keep_alive(void)
{
    struct epoll_event events[EVENTS];
    connect_all();
    for (int i = 0; i < count; i++)
        send_request(&connections[i]);
    while (!stop) {
        int n = wait_for(events, NULL);
        for (int i = 0; i < n; i++) {
            struct connection *it = events[i].data.ptr;
            if (receive(it))
                send_request(it);
        }
    }
}

/*
 * Over loopback the connection stands when connect() returns, although it says EINPROGRESS, so the request is tried at
 * once; only when that was too early does the connection wait until it can be written to.
 */
static void open_and_send(struct connection *it)
{
    it->fd = connected(SOCK_NONBLOCK);
    it->left = answer_length;
    ssize_t sent = send(it->fd, request, request_length, MSG_NOSIGNAL);
    it->sent = sent == (ssize_t)request_length;
    if (!it->sent && errno != EAGAIN)
        die("send");
    watch(it, EPOLL_CTL_ADD, it->sent ? EPOLLIN : EPOLLOUT);
}

/* Closes as soon as the answer is whole, without waiting for the server to close: its length is known. */
static void connection_per_request(void)
{
    struct epoll_event events[EVENTS];
    for (int i = 0; i < count; i++)
        open_and_send(&connections[i]);
    while (!stop) {
        int n = wait_for(events, NULL);
        for (int i = 0; i < n; i++) {
            struct connection *it = events[i].data.ptr;
            if (!it->sent) {
                send_request(it);
                it->sent = 1;
                watch(it, EPOLL_CTL_MOD, EPOLLIN);
            } else if (receive(it)) {
                close(it->fd);
                open_and_send(it);
            }
        }
    }
}

static long long nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/*
 * Request n is due at n / rate after the start and never earlier. What is due while every connection is busy goes out
 * on the next free one: the timetable is kept by count, not thinned.
 */
static void timetable(double rate)
{
    struct epoll_event events[EVENTS];
    struct connection **idle = calloc((size_t)count, sizeof *idle);
    int idles = 0;
    double sent = 0;
    if (!idle)
        die("memory");
    if (prctl(PR_SET_TIMERSLACK, 1))
        die("timer slack");
    connect_all();
    while (idles < count) {
        idle[idles] = &connections[idles];
        idles++;
    }
    long long start = nanoseconds();
    long long due = start;
    while (!stop) {
        long long now = nanoseconds();
        while (idles && due <= now) {
            send_request(idle[--idles]);
            sent += 1;
            due = start + (long long)(sent / rate * 1e9);
        }
        long long rest = due > now ? due - now : 0;
        struct timespec at_most = {rest / 1000000000LL, rest % 1000000000LL};
        int n = wait_for(events, idles ? &at_most : NULL);
        for (int i = 0; i < n; i++) {
            struct connection *it = events[i].data.ptr;
            if (receive(it))
                idle[idles++] = it;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc > 7) {
        fprintf(stderr, "usage: bare keep-alive|close|rate PORT PATH CONNECTIONS SECONDS [RATE]\n");
        return 2;
    }
    const char *mode = argv[1];
    int closes = !strcmp(mode, "close");
    double rate = argc == 7 ? atof(argv[6]) : 0;
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[2]))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    request_length = (size_t)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n%s\r\n", argv[3],
                                      argv[2], closes ? "Connection: close\r\n" : "");
    count = atoi(argv[4]);
    connections = calloc(count > 0 ? (size_t)count : 1, sizeof *connections);
    epoll = epoll_create1(0);
    if (request_length >= sizeof request || count < 1 || !connections || epoll < 0 || (!strcmp(mode, "rate") && rate <= 0))
        die("arguments");
    learn();
    start_alarm(atof(argv[5]));
    if (closes)
        connection_per_request();
    else if (rate > 0)
        timetable(rate);
    else
        keep_alive();
    printf("%lu\n", done);
    return 0;
}
