// The CUDA driver's functions on the CPU: a test double. Device memory is malloc'ed between red zones and poisoned when
// it is freed; a module is the path of a shared library made of the kernels' source; a captured graph is the list of its
// launches. Nothing selects it by itself: tests load it in the driver's place. What calls and kernels cost can be set,
// for tests of what follows from such times.
//
// It is as strict as a driver may be. Work that is put into a stream is done as late as possible (host_lazy): when
// somebody waits for it, and of what is not ordered by streams and events, the last first. What no right program does
// is a fault: unknown handles, no current context, streams and functions of another device, kernels that get memory
// which is not the device's or is freed, misaligned vectors, page-locked memory freed while it is copied. A capture is
// broken by what a driver does not allow there. After host_break every call fails, as after a kernel's illegal address.
//
// A kernel NAME of a module library is found by its symbols:
//   launch_NAME(void **params, unsigned gx, gy, gz, bx, by, bz, size_t shared)   runs it
//   sizes_NAME      points to the sizes in bytes of its parameters, 0 at the end
//   pointers_NAME   points to whether each is a pointer
//   bound_NAME      the threads of a block that it is compiled for; 0: it does not say
// A misaligned access aborts.

#include "driver.hpp"

#define NEED_CONTEXT                                                                                  \
    if (!current) return misuse(INVALID_CONTEXT, std::string(__func__) + ": no context is current");  \
    if (sticky) return bad(sticky, "the context is broken by what a kernel did")
#define NEED_STREAM(name, handle)                                                                     \
    NEED_CONTEXT;                                                                                     \
    Held hold(guard);                                                                                 \
    Stream *name = stream_of(handle);                                                                 \
    if (!name) return misuse(INVALID_HANDLE, std::string(__func__) + ": no stream")
#define NEED(kind, handle)                                                                            \
    NEED_CONTEXT;                                                                                     \
    Held hold(guard);                                                                                 \
    if (!kind.count(handle)) return misuse(INVALID_HANDLE, std::string(__func__) + ": none of the " #kind)

extern "C" {

// -- what tests say and ask ------------------------------------------------------------------------------------------
void host_limit(size_t size) { limit = size; }
void host_devices(int count) { devices = count; }
void host_fail_allocation(long in) { fail_allocation = in; }
void host_noop(int on) { noop = on; }
void host_lazy(int on) { Held hold(guard); finish_all(); lazy = on; }
// Work of a library that computes at once: what is in a stream of the current device is done first.
void host_settle(void *stream) {
    Held hold(guard);
    Stream *s = current ? stream_of(stream) : nullptr;
    if (s) finish(put(s, nullptr));
    else report("a library works in no stream");
}
// What one call costs the host ("launch", "set", "graph launch"), or one kernel the device ("kernel", "graph kernel").
void host_cost(const char *what, long nanoseconds) { Held hold(guard); costs[what] = nanoseconds; }
double host_time() { Held hold(guard); return passed * 1e-9; }
void host_refuse_graphs(int on) { refuses_graphs = on; }
// From now on every call says this, as after a kernel that met an illegal address; 0: no more.
void host_break(int status) { Held hold(guard); sticky = status; }
// The device that is current, or -1; and whether a stream of a handle is one of it.
int host_device() { return current && !sticky ? current->device : -1; }
int host_has_stream(void *stream) { Held hold(guard); Stream *s = current ? stream_of(stream) : nullptr; return s && s->device == current->device; }
long host_count(const char *what) { Held hold(guard); return counts[what]; }
size_t host_live_bytes() { Held hold(guard); size_t sum = 0; for (auto &one : live) sum += one.second.size; return sum; }
long host_live_blocks() { Held hold(guard); return long(live.size()); }

// How many faults have been found, all memory looked at now; the last one's text is in host_fault_text.
long host_faults() {
    Held hold(guard);
    finish_all();
    for (auto &one : live) check_zones(one.first, one.second);
    release(0);
    long found = faults;
    faults = 0;
    return found;
}
const char *host_fault_text() { return reported.c_str(); }

// -- devices ---------------------------------------------------------------------------------------------------------
Status cuInit(unsigned flags) { initialized = initialized || !flags; return flags ? INVALID_VALUE : OK; }
Status cuDriverGetVersion(int *out) { *out = 13000; return OK; }
Status cuDeviceGetCount(int *out) {
    if (!initialized) return misuse(NOT_INITIALIZED, "cuInit was not called");
    *out = devices;
    return OK;
}
Status cuDeviceGet(int *out, int index) {
    if (index < 0 || index >= devices) return bad(INVALID_DEVICE, "no such device");
    *out = index;
    return OK;
}
Status cuDeviceGetName(char *out, int size, int device) {
    strncpy(out, "host test double", size);
    return device < devices ? OK : INVALID_DEVICE;
}
Status cuDeviceTotalMem_v2(size_t *out, int) { *out = limit; return OK; }
Status cuDeviceGetAttribute(int *out, int attribute, int) {
    static const std::map<int, int> known = {{1, 1024}, {8, 49152}, {10, 32}, {16, 4}, {38, 1 << 20}, {75, 9}, {76, 0},
                                             {97, 232448}};
    auto found = known.find(attribute);
    *out = found == known.end() ? 0 : found->second;
    return OK;
}
Status cuDevicePrimaryCtxRetain(Context **out, int device) {
    contexts[device].device = device;
    *out = &contexts[device];
    return OK;
}
Status cuCtxSetCurrent(Context *context) {
    if (context && (context < contexts || context >= contexts + devices)) return misuse(INVALID_CONTEXT, "no context");
    current = context;
    return OK;
}
Status cuCtxGetCurrent(Context **out) { *out = current; return OK; }
Status cuCtxGetDevice(int *out) {
    NEED_CONTEXT;
    *out = current->device;
    return OK;
}
Status cuCtxSynchronize() {
    NEED_CONTEXT;
    Held hold(guard);
    if (Status code = unsafe(__func__)) return code;
    finish_all();
    wait();
    counts["synchronize"]++;
    return OK;
}

// -- memory ----------------------------------------------------------------------------------------------------------
Status cuMemAlloc_v2(Address *out, size_t size) {
    NEED_CONTEXT;
    Held hold(guard);
    if (!size) return bad(INVALID_VALUE, "an allocation of 0 bytes");
    if (Status code = unsafe(__func__)) return code;
    if (fail_allocation >= 0 && fail_allocation-- == 0) return bad(OUT_OF_MEMORY, "an allocation that had to fail");
    if (used[current->device] + size > limit) return bad(OUT_OF_MEMORY, "over the limit");
    unsigned char *base = static_cast<unsigned char *>(aligned_alloc(256, (size + 2 * ZONE + 255) / 256 * 256));
    if (!base) return OUT_OF_MEMORY;
    memset(base, RED, ZONE);
    memset(base + ZONE, 0xCD, size);
    memset(base + ZONE + size, RED, ZONE);
    *out = reinterpret_cast<Address>(base + ZONE);
    live[*out] = {size, current->device};
    used[current->device] += size;
    counts["alloc"]++;
    return OK;
}
// The driver waits for the device before the memory is anybody else's; the double frees it when that has happened.
Status cuMemFree_v2(Address at) {
    NEED_CONTEXT;
    Held hold(guard);
    if (Status code = unsafe(__func__)) return code;
    auto found = live.find(at);
    if (found == live.end()) return misuse(INVALID_VALUE, "freed what is no block, or twice");
    Block block = found->second;
    if (block.device != current->device) return misuse(INVALID_VALUE, "memory of another context");
    used[block.device] -= block.size;
    live.erase(found);
    Work last(new Op{[=] {
        check_zones(at, block);
        memset(bytes(at), POISON, block.size);
        freed.push_back({at, block});
        freed_bytes += block.size;
        release(KEPT);
    }, {}, false});
    for (auto &one : backlog)
        if (!one->done) last->after.push_back(one);
    if (last->after.empty()) finish(last);
    else backlog.push_back(last);
    counts["free"]++;
    return OK;
}
Status cuMemHostAlloc(void **out, size_t size, unsigned) {
    NEED_CONTEXT;
    Held hold(guard);
    *out = malloc(size);
    pinned[static_cast<char *>(*out)] = size;
    counts["pinned"]++;
    return *out ? OK : OUT_OF_MEMORY;
}
Status cuMemFreeHost(void *at) {
    NEED_CONTEXT;
    Held hold(guard);
    auto found = pinned.find(static_cast<char *>(at));
    if (found == pinned.end()) return misuse(INVALID_VALUE, "freed what is no page-locked memory");
    for (auto &one : copies)
        if (!one.work->done && one.host < found->first + found->second && found->first < one.host + one.count) {
            report("page-locked memory freed while it is copied");
            finish(one.work);
        }
    pinned.erase(found);
    free(at);
    counts["unpinned"]++;
    return OK;
}

bool is_pinned(const void *at) {
    const char *host = static_cast<const char *>(at);
    auto found = pinned.upper_bound(host);
    if (found == pinned.begin()) return false;
    --found;
    return host < found->first + found->second;
}

#define COPY(what, is_wrong)                                                                   \
    NEED_STREAM(s, stream);                                                                    \
    if (s->capture) return breaks(s->capture, CAPTURE_UNSUPPORTED, "a copy in a captured stream"); \
    if (Status code = implicit(s)) return code;                                                \
    if (is_wrong) return bad(ILLEGAL_ADDRESS, "a copy outside of the device's memory");        \
    counts[what]++

// Memory that is not page-locked has been read when the call returns; the other kind is read when the copy runs.
Status cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t count, void *stream) {
    COPY("to device", !inside(to, count));
    const char *host = static_cast<const char *>(from);
    if (is_pinned(from)) {
        copies.push_back({put(s, [=] { memmove(bytes(to), host, count); }), host, count});
    } else {
        std::vector<char> staged(host, host + count);
        put(s, [=] { memcpy(bytes(to), staged.data(), count); });
    }
    return OK;
}
Status cuMemcpyDtoHAsync_v2(void *to, Address from, size_t count, void *stream) {
    COPY("to host", !inside(from, count));
    Work made = put(s, [=] { memmove(to, bytes(from), count); });
    if (is_pinned(to)) copies.push_back({made, static_cast<char *>(to), count});
    return OK;
}
Status cuMemcpyDtoDAsync_v2(Address to, Address from, size_t count, void *stream) {
    COPY("on device", !inside(to, count) || !inside(from, count));
    put(s, [=] { memmove(bytes(to), bytes(from), count); });
    return OK;
}
Status cuMemcpyPeerAsync(Address to, Context *, Address from, Context *, size_t count, void *stream) {
    COPY("between devices", !inside(to, count) || !inside(from, count));
    put(s, [=] { memmove(bytes(to), bytes(from), count); });
    return OK;
}
Status cuMemsetD8Async(Address to, unsigned char value, size_t count, void *stream) {
    COPY("set", !inside(to, count));
    put(s, [=] { memset(bytes(to), value, count); });
    return OK;
}
Status cuMemGetInfo_v2(size_t *free_, size_t *total) {
    NEED_CONTEXT;
    Held hold(guard);
    *total = limit;
    *free_ = limit > used[current->device] ? limit - used[current->device] : 0;
    return OK;
}
Status cuPointerGetAttribute(void *out, int attribute, Address at) {
    NEED_CONTEXT;
    Held hold(guard);
    auto found = live.upper_bound(at);
    if (found == live.begin()) return bad(INVALID_VALUE, "no device memory");
    --found;
    if (at >= found->first + found->second.size) return bad(INVALID_VALUE, "no device memory");
    if (attribute == 2) *static_cast<unsigned *>(out) = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE: device
    else if (attribute == 9) *static_cast<int *>(out) = found->second.device;  // DEVICE_ORDINAL
    else return bad(INVALID_VALUE, "an attribute that the double does not have");
    return OK;
}

// -- code ------------------------------------------------------------------------------------------------------------
Status cuModuleLoad(Module **out, const char *path) {
    NEED_CONTEXT;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return bad(INVALID_IMAGE, dlerror());
    Held hold(guard);
    modules.insert(*out = new Module{library, current->device, {}});
    counts["module"]++;
    return OK;
}
Status cuModuleUnload(Module *module) {
    NEED(modules, module);
    for (auto &one : module->functions)
        if (one.second) one.second->unloaded = true;
    modules.erase(module);
    delete module;  // the library stays: what waits needs its code
    return OK;
}
Status cuModuleGetFunction(Function **out, Module *module, const char *name) {
    NEED(modules, module);
    Function *&found = module->functions[name];
    if (!found) {
        void *run = dlsym(module->library, (std::string("launch_") + name).c_str());
        if (!run) return bad(NOT_FOUND, std::string("no kernel ") + name);
        auto symbol = [&](const char *what) { return dlsym(module->library, (what + std::string(name)).c_str()); };
        found = new Function{reinterpret_cast<Launcher>(run), *static_cast<const unsigned **>(symbol("sizes_")),
                             *static_cast<const unsigned char **>(symbol("pointers_")),
                             *static_cast<const unsigned *>(symbol("bound_")), name, 49152, module->device,
                             false};
        functions.insert(found);
        size_t sum = 0;
        for (int i = 0; found->sizes[i]; i++) sum += found->sizes[i];
        if (sum > 4096) return misuse(INVALID_VALUE, "kernel " + found->name + ": more than 4 KiB of parameters");
    }
    *out = found;
    return OK;
}
Status cuFuncSetAttribute(Function *function, int attribute, int value) {
    NEED(functions, function);
    if (attribute != 8 || value > 232448) return bad(INVALID_VALUE, "an attribute or a value that there is not");
    function->shared = value;
    return OK;
}
Status cuFuncGetAttribute(int *out, int, Function *) { *out = 1024; return OK; }
Status cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void *stream, void **params, void **) {
    NEED_STREAM(s, stream);
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    Status code = check(f, grid, block, shared);
    if (code) return code;
    if (f->device != current->device || s->device != f->device)
        return misuse(INVALID_HANDLE, "kernel " + f->name + ": the function or the stream is another device's");
    auto node = record(f, grid, block, shared, params);
    code = implicit(s);
    if (code) return code;
    if (s->capture) {
        s->capture->graph->nodes.push_back(node);
        return OK;
    }
    spend("launch");
    occupy("kernel");
    counts["launch"]++;
    if (!noop && has_memory(*node)) put(s, [=] { run(node); });
    return OK;
}

// -- streams and events ----------------------------------------------------------------------------------------------
Status cuStreamCreateWithPriority(Stream **out, unsigned flags, int) {
    NEED_CONTEXT;
    Held hold(guard);
    streams.insert(*out = new Stream{current->device, !flags, nullptr, nullptr, false});
    counts["stream"]++;
    return OK;
}
Status cuStreamDestroy_v2(Stream *stream) {  // what is in it is done nevertheless
    NEED(streams, stream);
    streams.erase(stream);
    delete stream;
    counts["stream"]--;
    return OK;
}
Status cuStreamSynchronize(void *stream) {
    NEED_STREAM(s, stream);
    if (s->capture) return breaks(s->capture, CAPTURE_UNSUPPORTED, "a wait for a captured stream");
    if (Status code = implicit(s)) return code;
    finish(put(s, nullptr));
    wait();
    counts["synchronize"]++;
    return OK;
}
Status cuStreamQuery(void *stream) {
    NEED_STREAM(s, stream);
    if (s->capture) return breaks(s->capture, CAPTURE_UNSUPPORTED, "a question about a captured stream");
    if (Status code = implicit(s)) return code;
    Work last = put(s, nullptr);
    const bool waits = !last->done && !last->after.empty();
    if (!waits || s->asked) finish(last);  // so that whoever asks again and again comes to an end
    s->asked = waits && !s->asked;
    return waits ? NOT_READY : OK;
}
Status cuStreamWaitEvent(void *stream, Event *event, unsigned) {
    NEED_STREAM(s, stream);
    if (!events.count(event)) return misuse(INVALID_HANDLE, "no event");
    if (Status code = implicit(s)) return code;
    if (event->capture) {  // the stream is captured too, until the first one waits for it
        if (s->capture && s->capture != event->capture) return breaks(s->capture, CAPTURE_ISOLATION, "an event of another capture");
        if (s == event->capture->origin) event->capture->open.erase(event->from);
        else event->capture->open.insert(s);
        s->capture = event->capture;
        return OK;
    }
    if (s->capture) return breaks(s->capture, CAPTURE_ISOLATION, "a captured stream waits for what is not captured");
    put(s, nullptr, event->work);
    counts["wait"]++;
    return OK;
}
Status cuEventCreate(Event **out, unsigned flags) {
    NEED_CONTEXT;
    Held hold(guard);
    events.insert(*out = new Event{current->device, !(flags & 2), nullptr, nullptr, nullptr, nullptr});
    counts["event"]++;
    return OK;
}
Status cuEventRecord(Event *event, void *stream) {
    NEED_STREAM(s, stream);
    if (!events.count(event)) return misuse(INVALID_HANDLE, "no event");
    if (event->device != s->device) return misuse(INVALID_HANDLE, "an event of another device than the stream's");
    if (Status code = implicit(s)) return code;
    event->capture = s->capture;
    event->from = s;
    if (s->capture) return OK;
    auto at = std::make_shared<std::chrono::steady_clock::time_point>();
    event->at = at;
    event->work = put(s, [=] { *at = std::chrono::steady_clock::now(); });
    return OK;
}
Status cuEventQuery(Event *event) {
    NEED(events, event);
    if (event->capture) return breaks(event->capture, CAPTURED_EVENT, "a question about a captured event");
    const bool waits = event->work && !event->work->done;
    if (waits) finish(event->work);
    return waits ? NOT_READY : OK;
}
Status cuEventSynchronize(Event *event) {
    NEED(events, event);
    if (event->capture) return breaks(event->capture, CAPTURED_EVENT, "a wait for a captured event");
    if (event->work) finish(event->work);
    return OK;
}
Status cuEventElapsedTime(float *out, Event *from, Event *to) {
    NEED(events, from);
    if (!events.count(to)) return misuse(INVALID_HANDLE, "no event");
    if (!from->work || !to->work || !from->timed || !to->timed)
        return bad(INVALID_HANDLE, "an event that was not recorded, or keeps no time");
    if (!from->work->done || !to->work->done) return bad(NOT_READY, "an event that has not happened");
    *out = std::chrono::duration<float, std::milli>(*to->at - *from->at).count();
    return OK;
}
Status cuEventDestroy_v2(Event *event) {
    NEED(events, event);
    events.erase(event);
    delete event;
    counts["event"]--;
    return OK;
}

// -- graphs ----------------------------------------------------------------------------------------------------------
Status cuStreamIsCapturing(void *stream, int *out) {
    NEED_STREAM(s, stream);
    *out = !s->capture ? 0 : s->capture->broken ? 2 : 1;
    return OK;
}
Status cuStreamBeginCapture_v2(Stream *stream, int mode) {  // 0: global, 1: of the thread, 2: relaxed
    NEED_CONTEXT;
    Held hold(guard);
    if (!streams.count(stream)) return bad(CAPTURE_UNSUPPORTED, "the default stream cannot be captured");
    if (stream->capture) return bad(CAPTURE_UNSUPPORTED, "the stream is captured already");
    stream->capture = std::make_shared<Capture>(Capture{new Graph(), stream, mode != 2, false, {}});
    return OK;
}
Status cuStreamEndCapture(Stream *stream, Graph **out) {
    NEED_CONTEXT;
    Held hold(guard);
    if (!streams.count(stream) || !stream->capture || stream->capture->origin != stream)
        return bad(CAPTURE_UNSUPPORTED, "no capture began in the stream");
    auto capture = stream->capture;
    for (void *one : streams)
        if (static_cast<Stream *>(one)->capture == capture) static_cast<Stream *>(one)->capture = nullptr;
    *out = nullptr;
    if (capture->broken) return bad(CAPTURE_INVALIDATED, "the capture was broken");
    if (!capture->open.empty()) return bad(CAPTURE_UNJOINED, "a stream was captured that the first one does not wait for");
    graphs.insert(*out = capture->graph);
    return OK;
}
Status cuGraphCreate(Graph **out, unsigned) {
    NEED_CONTEXT;
    Held hold(guard);
    graphs.insert(*out = new Graph());
    return OK;
}
Status cuGraphAddKernelNode_v2(Node **out, Graph *graph, Node *const *, size_t, const Params *params) {
    NEED(graphs, graph);
    Status code = check(params->func, params->grid, params->block, params->shared);
    if (code) return code;
    graph->nodes.push_back(record(params->func, params->grid, params->block, params->shared, params->params));
    *out = graph->nodes.back().get();
    return OK;
}
Status cuGraphInstantiateWithFlags(Graph **out, Graph *graph, unsigned long long) {
    NEED(graphs, graph);
    if (refuses_graphs) return bad(OUT_OF_MEMORY, "a graph that had to fail");
    graphs.insert(*out = new Graph());  // its nodes remember which they were made of
    for (auto &node : graph->nodes) (*out)->nodes.push_back(copy(node));
    counts["graph"]++;
    return OK;
}
Status cuGraphUpload(Graph *graph, void *stream) {
    NEED_STREAM(s, stream);
    return graphs.count(graph) && s ? OK : misuse(INVALID_HANDLE, "no graph");
}
Status cuGraphLaunch(Graph *graph, void *stream) {
    NEED_STREAM(s, stream);
    if (!graphs.count(graph)) return misuse(INVALID_HANDLE, "no graph");
    if (s->capture) return breaks(s->capture, CAPTURE_UNSUPPORTED, "a graph in a captured stream");
    if (Status code = implicit(s)) return code;
    counts["graph launch"]++;
    spend("graph launch");
    for (auto &node : graph->nodes) {
        occupy("graph kernel");
        counts["launch"]++;
        if (s->device != node->func->device) return misuse(INVALID_HANDLE, "a graph of another device");
        if (noop || !has_memory(*node)) continue;
        put(s, [=] { run(node); });
    }
    return OK;
}
Status cuGraphGetNodes(Graph *graph, Node **out, size_t *count) {
    NEED(graphs, graph);
    if (out)
        for (size_t i = 0; i < *count && i < graph->nodes.size(); i++) out[i] = graph->nodes[i].get();
    *count = graph->nodes.size();
    return OK;
}
Status cuGraphNodeGetType(Node *, int *out) { *out = 0; return OK; }
Status cuGraphKernelNodeGetParams_v2(Node *node, Params *out) {
    *out = {node->func, {node->grid[0], node->grid[1], node->grid[2]}, {node->block[0], node->block[1], node->block[2]},
            node->shared, node->table.data(), nullptr, nullptr, nullptr};
    return OK;
}
Status cuGraphExecKernelNodeSetParams_v2(Graph *graph, Node *node, const Params *params) {
    NEED(graphs, graph);
    Status code = check(params->func, params->grid, params->block, params->shared);
    if (code) return code;
    spend("set");
    for (auto &mine : graph->nodes)
        if (mine->origin == node) {  // the node of the graph that this is an instance of
            mine = record(params->func, params->grid, params->block, params->shared, params->params);
            mine->origin = node;
            return OK;
        }
    return bad(INVALID_VALUE, "the node is none of this graph");
}
Status cuGraphExecDestroy(Graph *graph) {
    NEED(graphs, graph);
    graphs.erase(graph);
    delete graph;
    counts["graph"]--;
    return OK;
}
Status cuGraphDestroy(Graph *graph) {
    NEED(graphs, graph);
    graphs.erase(graph);
    delete graph;
    return OK;
}

// -- texts -----------------------------------------------------------------------------------------------------------
Status cuGetErrorName(int code, const char **out) {
    static const std::map<int, const char *> names = {
        {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"}, {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
        {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"}, {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"}, {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"}, {NOT_READY, "CUDA_ERROR_NOT_READY"},
        {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {LAUNCH_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}, {CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
        {CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"}, {CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
        {CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"}};
    auto found = names.find(code);
    *out = found == names.end() ? nullptr : found->second;
    return found == names.end() ? INVALID_VALUE : OK;
}
Status cuGetErrorString(int, const char **out) { *out = fault_text.c_str(); return OK; }

}  // extern "C"
