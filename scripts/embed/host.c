/* host.c: see host.h. The calls of weir, the same in every host, are at the top. */
#include "host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *const phase_names[PHASES] = {"loading", "prefill", "decode", "idle"};

int64_t host_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- weir: load, then generate; each function below is called on the host's thread, in its loop ---- */

/* The end of the generation, or of the attempt: the client ends next, and with it the program. */
static void ended(host *h) {
    atomic_store(&h->phase, IDLE);
    atomic_store(&h->client_stop, true);
}

void host_fail(host *h, const char *what, const weir_error *error) {
    if (h->status != 130)
        fprintf(stderr, "%s: %s\n", what, error ? weir_error_text(error) : strerror(errno));
    if (!h->status)
        h->status = 1;
    ended(h);
}

static void on_piece(void *data, const char *piece, size_t size) {
    host *h = data;
    atomic_store(&h->phase, DECODE);
    fwrite(piece, 1, size, stdout);
    fflush(stdout);
}

static void on_done(void *data, const weir_finish *finish, const weir_error *error) {
    host *h = data;
    h->request = 0;
    if (error) {
        host_fail(h, "generate", error);
        return;
    }
    h->finish = *finish;
    printf("\n");
    fflush(stdout);
    ended(h);
}

static void on_ready(void *data, weir_model *m, const weir_error *error) {
    host *h = data;
    if (error) {
        host_fail(h, h->model, error);
        return;
    }
    h->loaded = m;
    if (h->status) /* interrupted meanwhile */
        return;
    weir_generate_options o = {.prompt = h->prompt, .tokens = h->tokens, .n_tokens = h->n_tokens, .max_tokens = h->max_tokens};
    weir_error *e = NULL;
    atomic_store(&h->phase, PREFILL);
    if (weir_generate(m, &o, on_piece, on_done, h, &h->request, &e))
        host_fail(h, "generate", e);
    weir_error_free(e);
}

bool host_begin(host *h) {
    weir_error *error = NULL;
    weir_load_options o = {.threads = h->threads};
    if (!weir_model_load_async(h->system, h->model, &o, on_ready, h, &error))
        return true;
    host_fail(h, h->model, error);
    weir_error_free(error);
    return false;
}

/* on_done comes with ECANCELLED; a load is ended by weir_system_free. */
void host_interrupt(host *h) {
    h->status = 130;
    if (h->request)
        weir_cancel(h->loaded, h->request);
    else
        ended(h);
}

static void end_client(host *h);

static void free_samples(samples *all) {
    for (int i = 0; i < PHASES; i++)
        free(all[i].values);
}

int host_end(host *h) {
    end_client(h);
    weir_model_free(h->loaded);
    weir_system_free(h->system);
    free_samples(h->late);
    free_samples(h->trips);
    free(h->prompt);
    free(h->tokens);
    return h->status;
}

/* ---- options ---- */

static int usage(const char *program, int status) {
    fprintf(status ? stderr : stdout,
            "usage: %s [OPTIONS] MODEL [PROMPT]\n"
            "Completes a prompt while a 5 ms timer and an echo service go on in the same event loop; prints how late the timer was and\n"
            "how long the echo took. MODEL is a GGUF file, or a name kept by `weir fetch`.\n"
            "  -n TOKENS   as many at most (64)\n"
            "  -f FILE     the prompt is the contents of FILE\n"
            "  -k IDS      the prompt is these tokens, separated by commas\n"
            "  -t THREADS  of the device (the processors)\n"
            "  -i SECONDS  stays as long after the generation, with nothing to do\n"
            "  -h          prints this\n"
            "Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted.\n",
            program);
    return status;
}

static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc(1 << 20) : NULL;
    if (text) {
        size_t n = fread(text, 1, (1 << 20) - 1, f);
        text[n] = 0;
    } else {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    }
    if (f)
        fclose(f);
    return text;
}

static bool read_tokens(host *h, const char *text) {
    free(h->tokens);
    h->tokens = calloc(strlen(text) + 1, sizeof *h->tokens);
    h->n_tokens = 0;
    for (char *end; h->tokens && *text; text = *end ? end + 1 : end) {
        h->tokens[h->n_tokens++] = (int32_t)strtol(text, &end, 10);
        if (end == text || (*end && *end != ','))
            return false;
    }
    return h->n_tokens > 0;
}

static bool read_unsigned(const char *text, unsigned *v) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    *v = (unsigned)n;
    return *text >= '0' && *text <= '9' && !*end && n <= 1000000;
}

static bool read_option(host *h, int option, const char *value) {
    char *end;
    switch (option) {
    case 'n':
        return read_unsigned(value, &h->max_tokens) && h->max_tokens;
    case 't':
        return read_unsigned(value, &h->threads);
    case 'k':
        return read_tokens(h, value);
    case 'f':
        free(h->prompt);
        h->prompt = read_file(value);
        return h->prompt != NULL;
    case 'i':
        h->idle = strtod(value, &end);
        return *value && !*end && h->idle >= 0;
    default:
        return false;
    }
}

int host_options(host *h, int argc, char **argv) {
    int option;
    h->max_tokens = 64;
    while ((option = getopt(argc, argv, "n:t:k:f:i:h")) != -1) {
        if (option == 'h') {
            usage(argv[0], 0);
            exit(0);
        }
        if (!read_option(h, option, optarg))
            return usage(argv[0], 2);
    }
    h->model = optind < argc ? argv[optind++] : NULL;
    if (optind < argc && !h->prompt && !h->tokens)
        h->prompt = strdup(argv[optind++]);
    if (!h->model || optind < argc || !h->prompt == !h->tokens)
        return usage(argv[0], 2);
    return 0;
}

/* ---- figures ---- */

static void add(samples *s, int64_t value) {
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 1024;
        int64_t *values = realloc(s->values, room * sizeof *values);
        if (!values)
            return;
        s->values = values;
        s->room = room;
    }
    s->values[s->count++] = value;
}

void host_late(host *h, int64_t ns) {
    add(&h->late[atomic_load(&h->phase)], ns);
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_samples(const char *what, samples *all) {
    for (int i = 0; i < IDLE; i++) {
        samples *s = &all[i];
        if (!s->count)
            continue;
        qsort(s->values, s->count, sizeof *s->values, compare);
        fprintf(stderr, "%-10s %-8s %6zu  p50 %8.3f ms  p99 %8.3f ms  max %8.3f ms\n", what, phase_names[i], s->count,
                (double)s->values[s->count / 2] / 1e6, (double)s->values[(s->count * 99) / 100] / 1e6,
                (double)s->values[s->count - 1] / 1e6);
    }
}

static void print_figures(host *h) {
    if (h->finish.reason)
        fprintf(stderr, "generated  %u tokens after %u, prefill %.3f s, decode %.3f s, %s\n", h->finish.tokens, h->finish.prompt_tokens,
                (double)h->finish.prefill / 1e9, (double)h->finish.decode / 1e9, h->finish.reason);
    print_samples("5 ms timer", h->late);
    print_samples("echo", h->trips);
    fprintf(stderr, "echo       %u replies, %u wrong\n", h->replies, h->wrong);
}

static long switches(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_nvcsw;
}

void host_idle_begin(host *h) {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &h->idle_since);
    h->idle_switches = switches();
}

void host_idle_end(host *h) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    double ms = (double)(t.tv_sec - h->idle_since.tv_sec) * 1e3 + (double)(t.tv_nsec - h->idle_since.tv_nsec) / 1e6;
    fprintf(stderr, "idle       %.1f s: %ld context switches of all threads, %.3f ms of processor time\n", h->idle,
            switches() - h->idle_switches, ms);
}

/* ---- echo: the service's side of a connection ---- */

static size_t whole_lines(const echo *e) {
    size_t n = e->size;
    while (n && e->bytes[n - 1] != '\n')
        n--;
    return n;
}

static enum echo_wants send_lines(echo *e) {
    ssize_t n = send(e->fd, e->bytes, e->lines, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? ECHO_WRITE : ECHO_CLOSE;
    memmove(e->bytes, e->bytes + n, e->size - (size_t)n);
    e->size -= (size_t)n;
    e->lines -= (size_t)n;
    return e->lines ? ECHO_WRITE : ECHO_READ;
}

enum echo_wants host_echo(echo *e) {
    if (e->lines)
        return send_lines(e);
    if (e->size == sizeof e->bytes) /* too long a line */
        return ECHO_CLOSE;
    ssize_t n = recv(e->fd, e->bytes + e->size, sizeof e->bytes - e->size, 0);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? ECHO_READ : ECHO_CLOSE;
    e->size += (size_t)n;
    e->lines = whole_lines(e);
    return e->lines ? send_lines(e) : ECHO_READ;
}

static struct sockaddr_in loopback(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

int host_listen(host *h) {
    struct sockaddr_in a = loopback(0);
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &size) != 0) {
        host_fail(h, "listening on 127.0.0.1", NULL);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    h->port = ntohs(a.sin_port);
    return fd;
}

/* ---- echo: the client, on its own thread, with a blocking socket ---- */

/* Sends a line and waits for it to come back; false: the connection is broken, or the host did not answer for a minute. */
static bool round_trip(host *h, int fd, unsigned n) {
    char line[32], back[32];
    int size = snprintf(line, sizeof line, "line %u\n", n), got = 0, phase = atomic_load(&h->phase);
    int64_t begin = host_now();
    if (send(fd, line, (size_t)size, MSG_NOSIGNAL) != size)
        return false;
    while (got < size) {
        ssize_t k = recv(fd, back + got, (size_t)(size - got), 0);
        if (k <= 0)
            return false;
        got += (int)k;
    }
    add(&h->trips[phase], host_now() - begin);
    h->replies++;
    h->wrong += memcmp(line, back, (size_t)size) != 0;
    return true;
}

static void *client(void *data) {
    host *h = data;
    struct sockaddr_in a = loopback(h->port);
    int fd = atomic_load(&h->client_fd);
    bool ok = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
    for (unsigned n = 0; ok && (n == 0 || !atomic_load(&h->client_stop)); n++) {
        ok = round_trip(h, fd, n);
        nanosleep(&(struct timespec){0, HOST_TICK_NS}, NULL);
    }
    h->wrong += !ok;
    shutdown(fd, SHUT_RDWR); /* closed by the host, which may want to interrupt it */
    return NULL;
}

bool host_client_start(host *h) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {60, 0};
    if (fd < 0) {
        host_fail(h, "the client's socket", NULL);
        return false;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    atomic_store(&h->client_fd, fd);
    int code = pthread_create(&h->client, NULL, client, h);
    h->client_runs = !code;
    if (code) {
        errno = code;
        host_fail(h, "the client's thread", NULL);
    }
    return !code;
}

static void join_client(host *h) {
    int fd = atomic_exchange(&h->client_fd, 0);
    if (h->client_runs)
        pthread_join(h->client, NULL);
    h->client_runs = false;
    if (fd > 0)
        close(fd);
}

/* Whatever it waits for: the program ends. */
static void end_client(host *h) {
    atomic_store(&h->client_stop, true);
    if (atomic_load(&h->client_fd) > 0)
        shutdown(atomic_load(&h->client_fd), SHUT_RDWR);
    join_client(h);
}

void host_client_gone(host *h) {
    join_client(h);
    if (h->wrong && !h->status)
        h->status = 1;
    print_figures(h);
}
