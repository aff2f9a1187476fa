/* device.c: the cuda device: opening the driver, the context and the kernels, its table of functions, and its end. Knows neither streams nor launches. */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static int driver_failed(CUresult code, const char *call, unsigned index, weir_error **error) {
    return weir_fail(error, WEIR_EDEVICE, "device cuda:%u: %s: %s", index, call, weir__cuda_error_text(code));
}

static int open_context(weir__cuda *c, unsigned index, weir_error **error) {
    const weir__cuda_driver *d = &c->driver;
    int count = 0, major = 0, minor = 0;
    CUresult code = d->DeviceGetCount(&count);
    if (code || (int)index >= count)
        return weir_fail(error, WEIR_EINVAL, "device cuda:%u: there is none of this number (the driver knows %d)", index, count);
    code = d->DeviceGet(&c->device, (int)index);
    if (!code)
        code = d->DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, c->device);
    if (!code)
        code = d->DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, c->device);
    c->capability = 10 * major + minor;
    if (!code)
        code = d->PrimaryCtxRetain(&c->context, c->device);
    return code ? driver_failed(code, "cuDevicePrimaryCtxRetain", index, error) : WEIR_OK;
}

static void describe(weir__cuda *c) {
    char name[40] = "";
    c->driver.DeviceGetName(name, sizeof name, c->device);
    snprintf(c->base.detail, sizeof c->base.detail, "%s, sm_%d%s", name, c->capability, c->blas.library ? ", cuBLAS" : "");
}

/* The context is current here and restored by the caller. */
static int open_device(weir__cuda *c, unsigned index, weir_error **error) {
    int code = open_context(c, index, error);
    if (code)
        return code;
    CUresult current = c->driver.CtxSetCurrent(c->context);
    if (current)
        return driver_failed(current, "cuCtxSetCurrent", index, error);
    code = weir__cuda_kernels_open(c, index, error);
    if (code)
        return code;
    weir__cuda_blas_open(c);
    describe(c);
    return weir__cuda_memory_init(c, error);
}

static void end_context(weir__cuda *c) {
    weir__cuda_scope scope = weir__cuda_enter(c);
    weir__cuda_blas_close(c);
    weir__cuda_memory_fini(c);
    for (size_t i = 0; i < c->event_count; i++)
        c->driver.EventDestroy(c->events[i]);
    if (c->module)
        c->driver.ModuleUnload(c->module);
    weir__cuda_leave(c, scope);
    c->driver.PrimaryCtxRelease(c->device);
}

static void free_device(weir__cuda *c) {
    if (c->gone)
        weir__cuda_memory_fini(c);
    else if (c->context)
        end_context(c);
    weir__free(c->base.system, c->events);
    weir__cublas_close(&c->blas);
    weir__cuda_driver_close(&c->driver);
    weir__threads_fini(&c->threads);
    pthread_mutex_destroy(&c->graphs);
    pthread_mutex_destroy(&c->base.lock);
    weir__free(c->base.system, c);
}

/* ---- the table ---- */

static const char *bind(weir__device *d, enum weir_kernel kernel, const void *args, weir__entry **entry) {
    weir__cuda_op *op = NULL;
    weir__cuda *c = weir__cuda_of(d);
    const char *why = weir__cuda_bind(d->system, c->blas.library != NULL, kernel, args, &op);
    if (!why && (why = weir__cuda_kernels_check(c, op)))
        weir__cuda_op_unref(op);
    *entry = why ? NULL : (weir__entry *)op;
    return why;
}

static void entry_ref(weir__entry *entry) {
    weir__cuda_op_ref((weir__cuda_op *)entry);
}
static void entry_unref(weir__entry *entry) {
    weir__cuda_op_unref((weir__cuda_op *)entry);
}

/* The driver's event may be recorded anew: waits that were issued mean the record before. */
static void event_free(weir__event *e) {
    weir__cuda *c = weir__cuda_of(e->device);
    if (!e->native)
        return;
    pthread_mutex_lock(&c->base.lock);
    bool kept = c->event_count < c->event_room;
    if (kept)
        c->events[c->event_count++] = e->native;
    pthread_mutex_unlock(&c->base.lock);
    if (kept)
        return;
    pthread_mutex_lock(&c->graphs);
    if (!c->gone)
        c->driver.EventDestroy(e->native);
    pthread_mutex_unlock(&c->graphs);
}

/* The context is given back, and with the last of those who retained it all that it holds: the next one begins anew. */
static bool retire(weir__device *d, int64_t patience) {
    weir__cuda *c = weir__cuda_of(d);
    if (!weir__threads_gone(&c->threads, patience))
        return false;
    pthread_mutex_lock(&c->memory);
    pthread_mutex_lock(&c->graphs);
    weir__cuda_scope scope = weir__cuda_enter(c);
    weir__cuda_blas_close(c);
    weir__cuda_leave(c, scope);
    c->gone = true;
    c->driver.PrimaryCtxRelease(c->device);
    pthread_mutex_unlock(&c->graphs);
    pthread_mutex_unlock(&c->memory);
    weir__cuda_memory_gone(c);
    return true;
}

static bool close_device(weir__device *d) {
    weir__cuda *c = weir__cuda_of(d);
    if (!weir__threads_end(&c->threads)) {
        weir__leave_behind(d->system, "device cuda: work that does not end was left behind, with all that it uses");
        return false;
    }
    free_device(c);
    return true;
}

static size_t product_workspace(const weir__device *d, int32_t rows, int32_t n, int32_t k) {
    (void)d;
    return weir__cuda_product_workspace(rows, n, k);
}
static size_t attention_workspace(const weir__device *d, int32_t rows, int32_t heads, int32_t dim, int32_t splits) {
    (void)d;
    return weir__cuda_attention_workspace(rows, heads, dim, splits);
}
static size_t sample_workspace(const weir__device *d, int32_t rows, int32_t vocab) {
    (void)d;
    return weir__cuda_sample_workspace(rows, vocab);
}

static const char *check_sample(const weir_sample *s) {
    if (s->logprobs)
        return "logprobs";
    if (s->biases)
        return "logit_bias";
    if (s->typical > 0 && s->typical < 1)
        return "typical";
    if (s->repeat_penalty > 0 && s->repeat_penalty != 1)
        return "repeat_penalty";
    if (s->frequency_penalty != 0)
        return "frequency_penalty";
    if (s->presence_penalty != 0)
        return "presence_penalty";
    return s->order[0] != WEIR_S_END ? "samplers" : NULL;
}

static const weir__device_table table = {
    .name = "cuda",
    .can_be_lost = true,
    .retire = retire,
    .close = close_device,
    .memory = weir__cuda_memory,
    .memory_free = weir__cuda_memory_free,
    .product_workspace = product_workspace,
    .attention_workspace = attention_workspace,
    .sample_workspace = sample_workspace,
    .check_sample = check_sample,
    .bind = bind,
    .entry_ref = entry_ref,
    .entry_unref = entry_unref,
    .list_free = weir__cuda_list_free,
    .event_free = event_free,
    .stream_open = weir__cuda_stream_open,
    .submit = weir__cuda_stream_submit,
    .wake = weir__cuda_stream_wake,
    .stream_close = weir__cuda_stream_close,
};

/* ---- making it ---- */

enum { EVENTS_KEPT = 256 };

static weir__cuda *new_device(weir_system *s) {
    weir__cuda *c = weir__alloc(s, sizeof *c);
    CUevent *events = weir__alloc(s, EVENTS_KEPT * sizeof(CUevent));
    const char *graphs = getenv("WEIR_CUDA_GRAPHS");
    if (!c || !events) {
        weir__free(s, c);
        weir__free(s, events);
        return NULL;
    }
    c->base.table = &table;
    c->base.system = s;
    c->base.threads = 1;
    c->events = events;
    c->event_room = EVENTS_KEPT;
    c->eager = graphs && strcmp(graphs, "0") == 0;
    pthread_mutex_init(&c->base.lock, NULL);
    weir__cuda_graphs_init(c);
    weir__threads_init(&c->threads, &c->base, weir__cuda_stream_release);
    return c;
}

static int make(weir_system *s, unsigned index, unsigned threads, weir__device **out, weir_error **error) {
    char why[160];
    weir__cuda_scope scope = {0};
    (void)threads;
    if (weir__system_inline(s))
        return weir_fail(error, WEIR_EUNSUPPORTED, "device cuda:%u: not under the test driver", index);
    weir__cuda *c = new_device(s);
    if (!c)
        return weir_fail(error, WEIR_ENOMEM, "device cuda:%u: no memory", index);
    if (!weir__cuda_driver_open(&c->driver, why, sizeof why)) {
        free_device(c);
        return weir_fail(error, WEIR_EUNSUPPORTED, "device cuda:%u: there is no driver: %s", index, why);
    }
    CUresult failed = c->driver.Init(0);
    int code = failed ? driver_failed(failed, "cuInit", index, error) : WEIR_OK;
    if (!code) {
        scope.restore = c->driver.CtxGetCurrent(&scope.before) == CUDA_SUCCESS;
        code = open_device(c, index, error);
        weir__cuda_leave(c, scope);
    }
    if (code)
        free_device(c);
    else
        *out = &c->base;
    return code;
}

/* ---- listing ---- */

static void list_one(weir_system *s, const weir__cuda_driver *d, unsigned index, weir__device_fn *fn, void *data) {
    char name[24], model[64] = "", detail[320], image[120];
    CUdevice device = 0;
    int major = 0, minor = 0;
    size_t memory = 0;
    weir__device *made = NULL;
    weir_error *error = NULL;
    d->DeviceGet(&device, (int)index);
    d->DeviceGetName(model, sizeof model, device);
    d->DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    d->DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    d->DeviceTotalMem(&memory, device);
    bool usable = make(s, index, 0, &made, &error) == WEIR_OK;
    int n = snprintf(detail, sizeof detail, "%s, sm_%d%d, %.1f GiB", model, major, minor, (double)memory / (1 << 30));
    weir__cuda_image_text(image, sizeof image);
    if (usable && weir__cuda_of(made)->blas.library)
        snprintf(detail + n, sizeof detail - (size_t)n, ", products of many rows: cuBLAS, %s", image);
    else if (usable)
        snprintf(detail + n, sizeof detail - (size_t)n, ", products of many rows: own (%s), %s", weir__cuda_of(made)->no_blas, image);
    else
        snprintf(detail + n, sizeof detail - (size_t)n, ": %s", weir_error_text(error));
    snprintf(name, sizeof name, "cuda:%u", index);
    fn(data, name, detail, usable);
    weir_error_free(error);
    if (made)
        made->table->close(made);
}

static void list(weir_system *s, weir__device_fn *fn, void *data) {
    weir__cuda_driver d;
    char why[160], text[320], image[120];
    int count = 0;
    weir__cuda_image_text(image, sizeof image);
    if (!weir__cuda_driver_open(&d, why, sizeof why)) {
        snprintf(text, sizeof text, "no driver: %s; %s", why, image);
        fn(data, "cuda", text, false);
        return;
    }
    CUresult code = d.Init(0);
    if (!code)
        code = d.DeviceGetCount(&count);
    if (code || count == 0) {
        snprintf(text, sizeof text, "no device: %s; %s", code ? weir__cuda_error_text(code) : "the driver knows none", image);
        fn(data, "cuda", text, false);
    }
    for (int i = 0; i < count; i++)
        list_one(s, &d, (unsigned)i, fn, data);
    weir__cuda_driver_close(&d);
}

const weir__backend weir__cuda_backend = {.name = "cuda", .many = true, .slow = true, .make = make, .list = list};
