/* The C example with one fault at a time, for the checks of conformance.
 *
 * The example's functions are included under other names; each exported function here calls its
 * original and, where DNN_MOCK_FAULT (or -DFAULT) names it, breaks one contract. On top of the example
 * it has logging, overridden shapes, contexts as bytes, one knob, and run-time scalars, so that their
 * checks have a plugin to hold against. The faults are listed in README.md.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define TAKES_OVERRIDES
#define hipdnnPluginGetName ex_name
#define hipdnnPluginGetVersion ex_version
#define hipdnnPluginGetApiVersion ex_api
#define hipdnnPluginGetType ex_type
#define hipdnnPluginGetLastErrorString ex_error
#define hipdnnEnginePluginGetAllEngineIds ex_ids
#define hipdnnEnginePluginGetEngineName ex_engine_name
#define hipdnnEnginePluginCreate ex_create
#define hipdnnEnginePluginDestroy ex_destroy
#define hipdnnEnginePluginSetStream ex_stream
#define hipdnnEnginePluginGetApplicableEngineIds ex_applicable
#define hipdnnEnginePluginGetEngineDetails ex_details
#define hipdnnEnginePluginDestroyEngineDetails ex_free_details
#define hipdnnEnginePluginGetWorkspaceSize ex_workspace
#define hipdnnEnginePluginCreateExecutionContext ex_plan
#define hipdnnEnginePluginDestroyExecutionContext ex_free_plan
#define hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext ex_plan_workspace
#define hipdnnEnginePluginExecuteOpGraph ex_execute
#include EXAMPLE
#undef hipdnnPluginGetName
#undef hipdnnPluginGetVersion
#undef hipdnnPluginGetApiVersion
#undef hipdnnPluginGetType
#undef hipdnnPluginGetLastErrorString
#undef hipdnnEnginePluginGetAllEngineIds
#undef hipdnnEnginePluginGetEngineName
#undef hipdnnEnginePluginCreate
#undef hipdnnEnginePluginDestroy
#undef hipdnnEnginePluginSetStream
#undef hipdnnEnginePluginGetApplicableEngineIds
#undef hipdnnEnginePluginGetEngineDetails
#undef hipdnnEnginePluginDestroyEngineDetails
#undef hipdnnEnginePluginGetWorkspaceSize
#undef hipdnnEnginePluginCreateExecutionContext
#undef hipdnnEnginePluginDestroyExecutionContext
#undef hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext
#undef hipdnnEnginePluginExecuteOpGraph

#ifndef FAULT
#define FAULT ""
#endif

enum { INTERNAL_ERROR = 3 };
typedef void (*callback_t)(int severity, const char *message);

static int is(const char *name) {
    const char *fault = getenv("DNN_MOCK_FAULT");
    return strcmp(fault ? fault : FAULT, name) == 0;
}

/* -DOWN_RAND: a function that the C library has too; with RTLD_DEEPBIND ours is the one called. */
#ifdef OWN_RAND
EXPORT int rand_r(unsigned *seed) { *seed = 1; return -7; }
static bool library_is_sane(void) { unsigned seed = 1; return rand_r(&seed) >= 0; }
#else
static bool library_is_sane(void) { return true; }
#endif

/* NULL arguments: accepted, or read from. */
#define NULLS(condition) do { \
    if ((condition) && is("null-accepted")) return SUCCESS; \
    if ((condition) && is("null-crash")) abort(); } while (0)

static atomic_int handles, contexts, details_alive, executing, asked, applied, destroyed;
static callback_t log_to;
static int log_level;

static void say(int severity, const char *message) {
    if (!log_to || (severity < log_level && !is("log-loud"))) return;
    log_to(is("log-severity") ? 17 : severity, is("log-null") ? NULL : message);
}

static status_t refuse(const char *text) { say(2, text); return fail(INTERNAL_ERROR, text); }

/* Set when the library goes: seen by its next life, and by a plugin loaded later. */
__attribute__((constructor)) static void begin(void) {
    if (is("jealous") && getenv("DNN_MOCK_SOMEONE")) setenv("DNN_MOCK_OTHER", "1", 1);
    setenv("DNN_MOCK_SOMEONE", "1", 1);
}
__attribute__((destructor)) static void end(void) { setenv("DNN_MOCK_LIFE", "1", 1); }

static char changing[16] = "mock a";

EXPORT status_t hipdnnPluginGetName(const char **name) {
    static int calls;
    NULLS(!name);
    if (is("nodelete")) {
        Dl_info info;
        dladdr((void *)begin, &info);
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }
    status_t status = ex_name(name);
    if (status != SUCCESS) return status;
    if (is("name-changes")) *name = ++calls % 2 ? "mock one" : "mock two";
    if (is("name-buffer")) *name = changing;
    if (is("name-latin1")) *name = "m\xf6" "ck";
    return SUCCESS;
}

EXPORT status_t hipdnnPluginGetVersion(const char **version) { NULLS(!version); return ex_version(version); }
EXPORT status_t hipdnnPluginGetType(int *type) { NULLS(!type); return ex_type(type); }

#ifndef NOV2025
EXPORT status_t hipdnnPluginGetApiVersion(const char **version) {
    NULLS(!version);
    status_t status = ex_api(version);
    if (status == SUCCESS && is("api-1-0")) *version = "1.0.0";
    if (status == SUCCESS && is("api-major-0")) *version = "0.9.0";
    return status;
}
#endif

EXPORT void hipdnnPluginGetLastErrorString(const char **text) {
    static char global[2048], huge[5000];
    if (!text) { if (is("error-null-argument")) abort(); return; }
    ex_error(text);
    if (is("null-error")) *text = NULL;
    if (is("error-null-before") && !**text) *text = NULL;
    if (is("error-empty")) *text = "";
    if (is("error-latin1")) *text = "k\xf6nnte";
    if (is("error-long")) { memset(huge, 'x', sizeof huge - 1); *text = huge; }
    if (is("error-global")) { if (**text) strcpy(global, *text); *text = global; }
    if (is("error-stale")) { if (!*global && **text) strcpy(global, *text); *text = global; }
}

EXPORT status_t hipdnnPluginSetLoggingCallback(callback_t callback) {
    if (is("log-keeps") && !callback) return SUCCESS;
    if (is("log-first") && log_to && callback) return SUCCESS;
    log_to = callback;
    return SUCCESS;
}

#ifndef NOV2025
EXPORT status_t hipdnnPluginSetLogLevel(int level) {
    if (is("log-level-status")) return INTERNAL_ERROR;
    if (level < 0 || level > 4) return INVALID_VALUE;
    log_level = level;
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetEngineName(int64_t id, const char **name) {
    NULLS(!name);
    if (is("registered") && name) { *name = "MIOPEN_ENGINE"; return SUCCESS; }
    status_t status = ex_engine_name(is("names-anything") ? engine_id() : id, name);
    if (status == SUCCESS && is("engine-name-wrong")) *name = "ANOTHER_NAME";
    if (is("other-case") && name) { *name = "DNN_ASSAY_C_EXAMPLE_engine"; return SUCCESS; }
    return status;
}
#endif

/* FNV-1a of the name that "other-case" gives. */
static int64_t own_id(void) {
    const char *name = is("other-case") ? "DNN_ASSAY_C_EXAMPLE_engine" : is("registered") ? "MIOPEN_ENGINE" : ENGINE_NAME;
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char *c = name; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001B3u;
    return (int64_t)hash;
}

EXPORT status_t hipdnnEnginePluginGetAllEngineIds(int64_t *ids, uint32_t max, uint32_t *count) {
    NULLS(!count || (!ids && max));
    status_t status = ex_ids(ids, max, count);
    if (status != SUCCESS) return status;
    if (max) ids[0] = own_id();
    if (is("ids-change") && applied && max) ids[0]++;
    if (is("counts-differ") && max) (*count)++;
    if (is("greedy-ids")) { *count = 2; if (ids) ids[1] = 1234; }
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginCreate(handle **out) {
    static handle only;
    NULLS(!out);
    strcpy(changing, "mock b");
    if (is("create-fails")) return refuse("mock: no device");
    if (is("handles-few") && handles >= 4) return refuse("mock: too many handles");
    if (is("create-once") && destroyed) return refuse("mock: only once");
    if (is("one-life") && getenv("DNN_MOCK_LIFE")) return refuse("mock: I have lived");
    if (is("leak-handle")) { void *volatile lost = malloc(64); (void)lost; }
    if (!library_is_sane()) return refuse("mock: the wrong rand_r");
    if (out && is("one-handle")) { only.magic = HANDLE_MAGIC; *out = &only; handles++; return SUCCESS; }
    if (out && is("handle-constant")) { *out = (handle *)0x1000; return SUCCESS; }
    status_t status = ex_create(out);
    handles += status == SUCCESS;
    return status;
}

/* The handle behind the constant one. */
static handle *real(handle *h) {
    static handle constant = {HANDLE_MAGIC};
    return h == (handle *)0x1000 ? &constant : h;
}

EXPORT status_t hipdnnEnginePluginDestroy(handle *h) {
    NULLS(!h);
    if (h == (handle *)0x1000) return SUCCESS;
    if (is("one-handle")) { handles--; return SUCCESS; }
    status_t status = ex_destroy(h);
    if (status == SUCCESS) { handles--; destroyed++; }
    return status;
}

EXPORT status_t hipdnnEnginePluginSetStream(handle *h, void *stream) {
    static int calls;
    NULLS(!h);
    if (is("stream-once") && calls++) return refuse("mock: the stream is set");
    return ex_stream(real(h), stream);
}

/* ADD with a run-time scalar as second operand, which the example declines. */
static const char *with_scalar(const_data bytes, job *out) {
    reader reading = {bytes.ptr, bytes.size, false}, *r = &reading;
    table graph = root(r);
    size_t nodes = target(r, graph, 5);
    if (r->bad || length(r, nodes) != 1) return "only graphs of one node";
    table node = element(r, nodes, 0);
    int tag = node.vtable_size >= 12 ? 2 : 1;
    size_t at = target(r, node, tag + 1);
    if (r->bad || !at || scalar(r, node, tag, 1, 0) != TAG_POINTWISE) return "only pointwise nodes";
    table a = table_at(r, at);
    if (scalar(r, a, 0, 1, 0) != MODE_ADD) return "only ADD";
    int64_t second = (int64_t)scalar(r, a, 6, 8, 0);
    size_t tensors = target(r, graph, 4), shape = 0;
    for (uint32_t i = 0; i < length(r, tensors) && !r->bad; i++) {
        table t = element(r, tensors, i);
        if ((int64_t)scalar(r, t, 0, 8, 0) == second && !scalar(r, t, 8, 1, 0)) return "no run-time scalar";
    }
    *out = (job){-1, {(int64_t)scalar(r, a, 5, 8, 0), second}, (int64_t)scalar(r, a, 8, 8, 0), 0};
    out->count = packed_float(r, graph, out->out, &shape);
    return r->bad || !out->count ? "the graph is malformed" : NULL;
}

static const char *takes(const_data graph, job *work) {
    const char *why_not = understand(graph, work);
    return why_not && !with_scalar(graph, work) ? NULL : why_not;
}

EXPORT status_t hipdnnEnginePluginGetApplicableEngineIds(handle *h, const const_data *graph, int64_t *ids,
                                                         uint32_t max, uint32_t *count) {
    NULLS(!h || !graph || !graph->ptr || !count);
    if (is("leak-query")) { void *volatile lost = malloc(48); (void)lost; }
    asked++;
    status_t status = ex_applicable(real(h), graph, ids, max, count);
    if (status != SUCCESS) return status;
    job work;
    const char *why_not = takes(*graph, &work);
    if (!*count && !why_not) { *count = 1; }
    if (*count && max) ids[0] = own_id();
    if (is("applicable-picky") && why_not) return refuse("mock: what a graph");
    if (is("applicable-unknown") && *count && max) ids[0] = 77;
    if (is("applicable-forgets") && asked > 1) *count = 0;
    if (is("no-count-only") && !max) *count = 0;
    if (is("applicable-greedy") && *count && ids) ids[0] = own_id();
    if (is("trusts-graph")) { *count = 1; if (max) ids[0] = own_id(); }
    if (is("crash-on-bad") && why_not && strstr(why_not, "malformed")) abort();
    if (is("strict-schema")) {
        reader r = {graph->ptr, graph->size, false};
        if (root(&r).vtable_size > 4 + 2 * 16) *count = 0;
    }
    if (is("writes-graph")) ((char *)graph->ptr)[graph->size - 1] ^= 1;
    return SUCCESS;
}

/* The file that DNN_MOCK_DETAILS names, if any: knobs and names without a FlatBuffers writer. */
static bool details_file(const_data *details) {
    const char *path = getenv("DNN_MOCK_DETAILS");
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file) return false;
    uint8_t *bytes = malloc(1 << 16);
    *details = (const_data){bytes, fread(bytes, 1, 1 << 16, file)};
    fclose(file);
    return true;
}

EXPORT status_t hipdnnEnginePluginGetEngineDetails(handle *h, int64_t id, const const_data *graph, const_data *details) {
    NULLS(!h || !graph || !graph->ptr || !details);
    if (is("details-lazy") && details && details->ptr) return SUCCESS;
    if (is("details-one") && details_alive) return refuse("mock: one at a time");
    if (is("details-in-graph")) { *details = *graph; return SUCCESS; }
    if (is("details-anything") || id == own_id()) id = engine_id();
    status_t status = ex_details(real(h), id, graph, details);
    if (status != SUCCESS) { say(2, "mock: no details"); return status; }
    details_alive++;
    if (is("details-garbage")) memset((void *)details->ptr, 0xEE, details->size);
    const_data other;
    if (details_file(&other)) { free((void *)details->ptr); *details = other; }
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroyEngineDetails(handle *h, const_data *details) {
    NULLS(!h || !details);
    if (is("details-in-graph")) { *details = (const_data){NULL, 0}; return SUCCESS; }
    const_data before = details ? *details : (const_data){NULL, 0};
    status_t status = ex_free_details(real(h), details);
    details_alive -= status == SUCCESS;
    if (status == SUCCESS && is("details-not-zeroed")) *details = before;
    return status;
}

/* The value of the first knob that a configuration sets, or 0. */
static int64_t knob(const const_data *config, bool *set) {
    reader reading = {config->ptr, config->size, false}, *r = &reading;
    table t = root(r);
    size_t settings = target(r, t, 1);
    *set = length(r, settings) > 0;
    if (!*set) return 0;
    table setting = element(r, settings, 0);
    size_t value = target(r, setting, 2);
    if (scalar(r, setting, 1, 1, 0) != 1 || !value) return INT64_MIN;
    return (int64_t)scalar(r, table_at(r, value), 0, 8, 0);
}

/* DNN_MOCK_KNOB is "min,max". */
static status_t check_knob(const const_data *config) {
    bool set;
    int64_t value = knob(config, &set);
    const char *range = getenv("DNN_MOCK_KNOB");
    long min = 0, max = 0;
    if (!set || !range || sscanf(range, "%ld,%ld", &min, &max) != 2) return SUCCESS;
    if (is("knob-refused")) return refuse("mock: no knobs today");
    if (is("knob-anything") || (value >= min && value <= max)) return SUCCESS;
    return refuse("mock: the knob is out of range");
}

EXPORT status_t hipdnnEnginePluginGetWorkspaceSize(handle *h, const const_data *config, const const_data *graph,
                                                   size_t *size) {
    NULLS(!h || !config || !config->ptr || !graph || !graph->ptr || !size);
    job work;
    status_t status = ex_workspace(real(h), config, graph, size);
    if (status == NOT_APPLICABLE && !takes(*graph, &work)) status = SUCCESS;
    if (status == SUCCESS && is("workspace-negative")) *size = (size_t)1 << 63;
    if (status == SUCCESS && is("workspace-differs")) *size = 1024;
    return status;
}

/* What the faults need to know of a context: found again by its address. */
typedef struct { context *of; int64_t knob; float scalar; int scalar_read, restored, order, executions; const const_data *graph; } extra;
static extra extras[64];
static int order;
static context *latest;
static _Thread_local int planned_here;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static extra *extra_of(context *c) {
    for (int i = 0; i < 64; i++) if (extras[i].of == c) return &extras[i];
    return NULL;
}

static void remember(context *c, extra with) {
    pthread_mutex_lock(&lock);
    extra *slot = extra_of(NULL);
    with.of = c;
    with.order = ++order;
    if (slot) *slot = with;
    latest = c;
    contexts++;
    planned_here = 1;
    pthread_mutex_unlock(&lock);
}

EXPORT status_t hipdnnEnginePluginCreateExecutionContext(handle *h, const const_data *config, const const_data *graph,
                                                         context **out) {
    static const_data kept;
    NULLS(!h || !config || !config->ptr || !graph || !graph->ptr || !out);
    if (is("needs-applicable") && !asked) return refuse("mock: nobody asked whether I take it");
    if (is("contexts-few") && contexts >= 4) return refuse("mock: too many plans");
    if (is("leak-plan")) { void *volatile lost = malloc(96); (void)lost; }
    job work;
    status_t status = ex_plan(real(h), config, graph, out);
    bool anything = status == INVALID_VALUE && is("context-anything");
    bool scalars = status == NOT_APPLICABLE && !with_scalar(*graph, &work);
    if (anything) understand(*graph, &work);
    if (anything || scalars) {
        *out = malloc(sizeof **out);
        **out = (context){CONTEXT_MAGIC, work};
        status = SUCCESS;
    }
    if (status == INVALID_VALUE) fail(status, "mock: no such engine to plan for");
    if (status != SUCCESS) { say(2, "mock: no plan"); return status; }
    if ((status = check_knob(config)) != SUCCESS) { free(*out); return status; }
    bool set;
    kept = *graph;
    remember(*out, (extra){.knob = knob(config, &set), .graph = &kept});
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroyExecutionContext(handle *h, context *c) {
    NULLS(!h || !c);
    extra *more = c ? extra_of(c) : NULL;
    if (is("destroy-order") && more && more->order != order) return refuse("mock: the last one first");
    status_t status = ex_free_plan(real(h), c);
    if (status != SUCCESS) return status;
    pthread_mutex_lock(&lock);
    if (more) { *more = (extra){0}; order--; }
    contexts--;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(handle *h, context *c, size_t *size) {
    NULLS(!h || !c || !size);
    return ex_plan_workspace(real(h), c, size);
}

static void *idle(void *nothing) { for (;;) pause(); return nothing; }

static status_t compute(handle *h, context *c, const device_buffer *buffers, uint32_t count) {
    extra *more = extra_of(c);
    job *work = &c->work;
    if (work->mode >= 0) return ex_execute(h, c, NULL, buffers, count);
    const float *a = find(buffers, count, work->in[0]), *b = find(buffers, count, work->in[1]);
    float *out = find(buffers, count, work->out);
    if (!a || !b || !out || !more) return fail(BAD_PARAM, "a tensor has no buffer");
    if (!more->scalar_read || !is("scalar-frozen")) more->scalar = *b;
    more->scalar_read = 1;
    for (size_t i = 0; i < work->count; i++) out[i] = a[i] + more->scalar;
    return SUCCESS;
}

/* Rounds sums the other way, where that is within any bound: the first, or those that `chance` says. */
static void other_rounding(const job *work, const device_buffer *buffers, uint32_t count, uint32_t chance) {
    const float *a = find(buffers, count, work->in[0]), *b = find(buffers, count, work->in[1]);
    float *out = find(buffers, count, work->out);
    for (size_t i = 0; a && b && out && work->mode == MODE_ADD && i < work->count; i++) {
        double exact = (double)a[i] + b[i];
        uint32_t bits;
        float other;
        memcpy(&bits, &out[i], 4);
        bits += (out[i] < exact) == (out[i] > 0) ? 1 : -1;
        memcpy(&other, &bits, 4);
        /* Hardly more than half an ulp off. */
        double error = other - exact, ulp = (double)other - out[i];
        if (error * error > 0.28 * ulp * ulp) continue;
        chance *= 2654435761u;
        if (chance && !(chance >> 31)) continue;
        out[i] = other;
        if (!chance) return;
    }
}

EXPORT status_t hipdnnEnginePluginExecuteOpGraph(handle *h, context *c, void *workspace, const device_buffer *buffers,
                                                 uint32_t count) {
    static device_buffer kept[8];
    static uint32_t kept_count;
    device_buffer own[8];
    float old[4096];
    (void)workspace;
    NULLS(!h || !c || !buffers);
    h = real(h);
    if (is("execute-fails")) return refuse("mock: execution failed on purpose");
    if (!is_handle(h) || !is_context(c) || !buffers || count > 8) return ex_execute(h, c, NULL, buffers, count);
    say(0, "mock: executing");
    size_t elements = c->work.count < 4096 ? c->work.count : 4096;
    uint32_t wanted = c->work.in[0] == c->work.in[1] ? 2 : 3;
    applied++;
    if (is("leak-execute")) { void *volatile lost = malloc(32); (void)lost; }
    if (is("leak-fd") && open("/dev/null", O_RDONLY) < 0) return refuse("mock: no descriptor");
    if (is("leak-thread")) { pthread_t thread; pthread_create(&thread, NULL, idle, NULL); }
    if (is("destroy-kills") && destroyed) return refuse("mock: another handle went");
    if (is("thread-bound") && !planned_here) return refuse("mock: not my thread");
    if (is("counts-buffers") && count != wanted) return refuse("mock: too many buffers");
    if (is("context-keeps-graph")) {
        job again;
        extra *more = extra_of(c);
        if (more && understand(*more->graph, &again)) return refuse("mock: the graph is gone");
    }
    if (is("keeps-pointers")) {
        if (!kept_count) { memcpy(kept, buffers, count * sizeof *kept); kept_count = count; }
        buffers = kept;
    }
    if (is("by-position")) {
        int64_t uids[3] = {c->work.in[0], wanted == 3 ? c->work.in[1] : c->work.out, c->work.out};
        for (uint32_t i = 0; i < count && i < wanted; i++) own[i] = (device_buffer){uids[i], buffers[i].ptr};
        buffers = own;
    }
    float *out = find(buffers, count, c->work.out);
    if (is("not-thread-safe")) {
        int others = executing++;
        usleep(20000);
        executing--;
        if (others) return refuse("mock: somebody else is here");
    }
    if (out && is("accumulates")) memcpy(old, out, elements * sizeof *old);
    if (is("context-shared") && latest) c->work = latest->work;
    status_t status = compute(h, c, buffers, count);
    if (status != SUCCESS) say(2, "mock: cannot execute");
    if (status != SUCCESS && is("missing-ignored")) return SUCCESS;
    if (status != SUCCESS && is("missing-silent")) *last_error = 0;
    if (status != SUCCESS) return status;
    extra *more = extra_of(c);
    if (is("accumulates")) for (size_t i = 0; i < elements; i++) out[i] += old[i];
    if (is("ulp-later") && more && more->executions++) other_rounding(&c->work, buffers, count, 0);
    if (is("ulp-by-chance")) other_rounding(&c->work, buffers, count, (uint32_t)getpid() * 2 + 1);
    if (is("knob-wrong") && more && more->knob) for (size_t i = 0; i < elements; i++) out[i] *= 2;
    if (getenv("DNN_MOCK_OTHER")) for (size_t i = 0; i < elements; i++) out[i] += 1;
    return SUCCESS;
}

#ifndef NOV2025
#ifndef WITHOUT_OVERRIDES
EXPORT status_t hipdnnEnginePluginExecuteOpGraphWithOverrides(
    handle *h, context *c, void *workspace, const device_buffer *buffers, uint32_t count, uint32_t overrides,
    const int64_t *uids, const uint32_t *ranks, const int64_t *const *shapes, const int64_t *const *strides) {
    (void)workspace; (void)uids; (void)strides;
    if (!is_context(c) || !overrides) return fail(BAD_PARAM, "not a context, or no overrides");
    context shaped = *c;
    shaped.work.count = 1;
    for (uint32_t axis = 0; axis < ranks[0]; axis++) shaped.work.count *= (size_t)shapes[0][axis];
    if (is("override-half")) shaped.work.count /= 2;
    if (is("override-sticks")) c->work.count = shaped.work.count;
    return ex_execute(real(h), &shaped, NULL, buffers, count);
}
#endif

static const char MAGIC[8] = "MOCKPLAN";
typedef struct { char magic[8]; job work; } saved;

EXPORT status_t hipdnnEnginePluginSerializeExecutionContextWithEngineId(handle *h, int64_t id, context *c,
                                                                        const_data *out) {
    (void)id;
    if (!is_handle(real(h)) || !is_context(c) || !out) return fail(BAD_PARAM, "an argument is null");
    extra *more = extra_of(c);
    if (is("serialize-once") && more && more->restored) return refuse("mock: it comes from bytes");
    static saved shared;
    saved *bytes = is("serialize-shared") ? &shared : malloc(sizeof *bytes);
    memcpy(bytes->magic, MAGIC, 8);
    bytes->work = c->work;
    *out = (const_data){bytes, sizeof *bytes};
    return SUCCESS;
}

EXPORT status_t hipdnnEnginePluginDestroySerializedExecutionContext(handle *h, const_data *bytes) {
    if (!is_handle(real(h)) || !bytes) return fail(BAD_PARAM, "an argument is null");
    if (is("serialize-kept")) return refuse("mock: the bytes stay");
    if (!is("serialize-shared")) free((void *)bytes->ptr);
    *bytes = (const_data){NULL, 0};
    return SUCCESS;
}

#ifndef WITHOUT_RESTORE
EXPORT status_t hipdnnEnginePluginCreateExecutionContextFromSerialized(handle *h, const const_data *bytes, context **out) {
    if (!is_handle(real(h)) || !has_bytes(bytes) || !out) return fail(BAD_PARAM, "an argument is null");
    saved plan = {"", {MODE_ADD, {0, 0}, 0, 0}};
    memcpy(&plan, bytes->ptr, bytes->size < sizeof plan ? bytes->size : sizeof plan);
    bool ours = bytes->size == sizeof plan && !memcmp(plan.magic, MAGIC, 8);
    if (!ours && !is("restore-anything")) return fail(BAD_PARAM, "these bytes are not mine");
    *out = malloc(sizeof **out);
    **out = (context){CONTEXT_MAGIC, plan.work};
    if (is("serialize-other")) (*out)->work.mode = MODE_RELU_FWD;
    remember(*out, (extra){.restored = 1});
    return SUCCESS;
}
#endif
#endif
