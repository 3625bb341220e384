/* A heuristic plugin: it ranks engines and executes nothing. One policy that keeps the host's order.
 *
 *   -DINCOMPLETE           Finalize is missing
 *   -DWITHOUT_POLICY_NAME  the policy has no name
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, BAD_PARAM = 1, NOT_INITIALIZED = 6, TYPE_HEURISTIC = 2, MAX_ENGINES = 64 };
typedef int status_t;
typedef struct { const void *ptr; size_t size; } data_t;
typedef struct { int unused; } handle;
typedef struct { int64_t ids[MAX_ENGINES]; size_t count; } policy;

static const char POLICY[] = "DNN_ASSAY_MOCK_POLICY";

static int64_t policy_id(void) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char *c = POLICY; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001B3u;
    return (int64_t)hash;
}

EXPORT status_t hipdnnPluginGetName(const char **name) { *name = "mock heuristic"; return SUCCESS; }
EXPORT status_t hipdnnPluginGetVersion(const char **version) { *version = "0.1"; return SUCCESS; }
EXPORT status_t hipdnnPluginGetType(int *type) { *type = TYPE_HEURISTIC; return SUCCESS; }
EXPORT void hipdnnPluginGetLastErrorString(const char **text) { if (text) *text = ""; }

EXPORT status_t hipdnnHeuristicPluginGetAllPolicyIds(int64_t *ids, uint32_t max, uint32_t *count) {
    if (max) ids[0] = policy_id();
    *count = 1;
    return SUCCESS;
}
#ifndef WITHOUT_POLICY_NAME
EXPORT status_t hipdnnHeuristicPluginGetPolicyName(int64_t id, const char **name) {
    if (id != policy_id()) return BAD_PARAM;
    *name = POLICY;
    return SUCCESS;
}
#endif
EXPORT status_t hipdnnHeuristicHandleCreate(handle **out) {
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}
EXPORT status_t hipdnnHeuristicHandleDestroy(handle *h) { free(h); return SUCCESS; }
EXPORT status_t hipdnnHeuristicHandleSetDeviceProperties(handle *h, const data_t *properties) {
    return h && properties ? SUCCESS : BAD_PARAM;
}
EXPORT status_t hipdnnHeuristicPolicyDescriptorCreate(handle *h, int64_t id, policy **out) {
    if (!h || id != policy_id()) return BAD_PARAM;
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}
EXPORT status_t hipdnnHeuristicPolicyDescriptorDestroy(policy *p) { free(p); return SUCCESS; }
EXPORT status_t hipdnnHeuristicPolicySetEngineIds(policy *p, const int64_t *ids, size_t count) {
    if (!p || count > MAX_ENGINES) return BAD_PARAM;
    memcpy(p->ids, ids, count * sizeof *ids);
    p->count = count;
    return SUCCESS;
}
EXPORT status_t hipdnnHeuristicPolicySetSerializedGraph(policy *p, const data_t *graph) {
    return p && graph ? SUCCESS : BAD_PARAM;
}
#ifndef INCOMPLETE
EXPORT status_t hipdnnHeuristicPolicyFinalize(policy *p, int32_t *applied) {
    if (!p || !applied) return BAD_PARAM;
    *applied = p->count > 0;
    return SUCCESS;
}
#endif
EXPORT status_t hipdnnHeuristicPolicyGetSortedEngineIds(policy *p, int64_t *ids, size_t *count) {
    if (!p || !count) return BAD_PARAM;
    if (ids) memcpy(ids, p->ids, (*count < p->count ? *count : p->count) * sizeof *ids);
    *count = ids && *count < p->count ? *count : p->count;
    return SUCCESS;
}
