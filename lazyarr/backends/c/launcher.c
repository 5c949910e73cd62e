/* Calls compiled programs from Python in about a hundred nanoseconds.

   A Program knows the address of one entry function

       int64_t entry(void **buf, const int64_t *dim, void *arena, void **fn)

   and what goes in and comes out. Called with arrays it checks dtype, rank, layout and sizes, derives
   the unknown sizes, allocates results and scratch, calls, and returns the results. It converts
   nothing: on anything that does not fit exactly it hands the arguments to `on_mismatch`, a Python
   function, which converts or raises. A nonzero code of the entry goes to `on_code`. */

typedef int64_t (*entry_function)(void **, const int64_t *, void *, void **);
typedef int64_t (*arena_function)(const int64_t *);

enum axis_kind { FIXED, BIND, AGREE, COMPUTED };
typedef struct {
    enum axis_kind kind;
    int64_t value;       /* FIXED: the size; BIND, AGREE: which unknown */
    const int64_t *code; /* COMPUTED */
} Axis;
typedef struct {
    PyArray_Descr *descr;
    int ndim;
    int computed; /* has it an axis of kind COMPUTED? */
    Axis *axes;
} Slot;

enum returns { RETURN_LIST, RETURN_SINGLE, RETURN_TUPLE };
enum { SCALAR_BYTES = 16, SCRATCH = 1024, STACK_ARENA = 4096 };
#define SLOW_NS 50000            /* work that takes longer runs without the GIL */
#define LARGE_BYTES (1 << 20)    /* results this large do so from the first call on */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    entry_function entry;
    arena_function arena;
    void **table;
    Py_ssize_t n_in, n_out, n_dims, n_args, n_checks;
    Slot *slots;        /* inputs, then outputs */
    PyObject **bound;   /* for each input its fixed array, or NULL where the caller gives it */
    const int64_t **checks;
    int64_t *code;      /* all size programs */
    Axis *axes;
    PyObject *keep, *on_mismatch, *on_code;
    int returns, reject_one, slow;
    unsigned calls;
} Program;

/* Store a Python or NumPy scalar that fits the slot exactly; 0 where it does not. */
static int store_scalar(const Slot *slot, PyObject *value, void *out) {
    int type = slot->descr->type_num;
    if (Py_TYPE(value) == slot->descr->typeobj) {
        PyArray_ScalarAsCtype(value, out);
        return 1;
    }
    if (PyFloat_CheckExact(value)) {
        if (type == NPY_DOUBLE) return *(double *)out = PyFloat_AS_DOUBLE(value), 1;
        if (type == NPY_FLOAT) return *(float *)out = (float)PyFloat_AS_DOUBLE(value), 1;
        return 0;
    }
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow) return 0;
        if (type == NPY_INT64) return *(int64_t *)out = v, 1;
        if (type == NPY_DOUBLE) return *(double *)out = (double)v, 1;
        if (type == NPY_INT32 && v >= INT32_MIN && v <= INT32_MAX) return *(int32_t *)out = (int32_t)v, 1;
        return 0;
    }
    if (PyBool_Check(value) && type == NPY_BOOL) return *(npy_bool *)out = value == Py_True, 1;
    return 0;
}

/* Check one input and bind its unknown sizes; return its data, or NULL where it does not fit. */
static void *take_input(const Slot *slot, PyObject *value, int64_t *dim, void *scalar) {
    if (Py_TYPE(value) != &PyArray_Type)
        return slot->ndim == 0 && store_scalar(slot, value, scalar) ? scalar : NULL;
    PyArrayObject *array = (PyArrayObject *)value;
    const int layout = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    if (PyArray_NDIM(array) != slot->ndim || (PyArray_FLAGS(array) & layout) != layout) return NULL;
    if (PyArray_DESCR(array) != slot->descr && !PyArray_EquivTypes(PyArray_DESCR(array), slot->descr))
        return NULL;
    const npy_intp *shape = PyArray_DIMS(array);
    for (int i = 0; i < slot->ndim; i++) {
        const Axis *axis = slot->axes + i;
        switch (axis->kind) {
        case FIXED: if (shape[i] != axis->value) return NULL; break;
        case BIND: dim[axis->value] = shape[i]; break;
        case AGREE: if (shape[i] != dim[axis->value]) return NULL; break;
        case COMPUTED: break; /* once all unknowns are bound */
        }
    }
    return PyArray_DATA(array);
}

/* Do sizes that depend on the unknowns agree? */
static int sizes_agree(const Program *p, PyObject *const *inputs, const int64_t *dim) {
    int64_t value;
    if (p->reject_one)
        for (Py_ssize_t i = 0; i < p->n_dims; i++)
            if (dim[i] == 1) return 0;
    for (Py_ssize_t i = 0; i < p->n_in; i++) {
        const Slot *slot = p->slots + i;
        if (!slot->computed) continue;
        const npy_intp *shape = PyArray_DIMS((PyArrayObject *)inputs[i]);
        for (int k = 0; k < slot->ndim; k++) {
            if (slot->axes[k].kind != COMPUTED) continue;
            if (!evaluate(slot->axes[k].code, dim, &value) || value != shape[k]) return 0;
        }
    }
    for (Py_ssize_t i = 0; i < p->n_checks; i++)
        if (!evaluate(p->checks[i], dim, &value)) return 0;
    return 1;
}

/* Return a new uninitialised array of the pool. `*fits` is 0, without an error, for an unfit shape. */
static PyObject *new_output(const Slot *slot, const int64_t *dim, int *fits, size_t *total) {
    npy_intp shape[NPY_MAXDIMS];
    size_t bytes = (size_t)PyDataType_ELSIZE(slot->descr);
    for (int i = 0; i < slot->ndim; i++) {
        const Axis *axis = slot->axes + i;
        int64_t n = axis->kind == FIXED ? axis->value : axis->kind == COMPUTED ? -1 : dim[axis->value];
        if (axis->kind == COMPUTED && !evaluate(axis->code, dim, &n)) n = -1;
        if (n < 0) return *fits = 0, NULL;
        shape[i] = (npy_intp)n;
        if (__builtin_mul_overflow(bytes, (size_t)n, &bytes)) return PyErr_NoMemory();
    }
    char *data = pool_take(bytes);
    if (!data) return PyErr_NoMemory();
    Py_INCREF(slot->descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, slot->descr, slot->ndim, shape, NULL, data,
                                           NPY_ARRAY_CARRAY, NULL);
    if (!array) return pool_give(data), NULL;
    /* from here on the array frees the block, through the handler */
    ((PyArrayObject_fields *)array)->mem_handler = Py_NewRef(handler_capsule);
    PyArray_ENABLEFLAGS((PyArrayObject *)array, NPY_ARRAY_OWNDATA);
    PyTraceMalloc_Track(TRACE_DOMAIN, (uintptr_t)data, bytes ? bytes : 1);
    *total += bytes;
    return array;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Call the entry, without the GIL when the work is long: by the size of the results, or because a
   recent call was (one in sixteen is timed). */
static int64_t run(Program *p, void **buffers, const int64_t *dim, void *arena, size_t total) {
    int alone = p->slow || total >= LARGE_BYTES;
    if (!alone && p->calls++ % 16) return p->entry(buffers, dim, arena, p->table);
    int64_t start = now_ns(), code;
    if (alone) {
        Py_BEGIN_ALLOW_THREADS
        code = p->entry(buffers, dim, arena, p->table);
        p->slow = now_ns() - start > SLOW_NS;
        Py_END_ALLOW_THREADS
    } else {
        code = p->entry(buffers, dim, arena, p->table);
        p->slow = now_ns() - start > SLOW_NS;
    }
    return code;
}

/* What one call needs: laid out in one scratch block. */
typedef struct {
    void **buffers;
    PyObject **inputs, **outputs;
    int64_t *dim;
    char *scalars;
} Frame;

static size_t lay_out(const Program *p, Frame *f, char *block) {
    char *next = block;
    f->scalars = next, next += (size_t)p->n_in * SCALAR_BYTES;
    f->buffers = (void **)next, next += (size_t)(p->n_in + p->n_out) * sizeof(void *);
    f->inputs = (PyObject **)next, next += (size_t)p->n_in * sizeof(void *);
    f->outputs = (PyObject **)next, next += (size_t)p->n_out * sizeof(void *);
    f->dim = (int64_t *)next, next += (size_t)(p->n_dims + 1) * sizeof(int64_t);
    return (size_t)(next - block);
}

static PyObject *collect(const Program *p, Frame *f) {
    if (p->returns == RETURN_SINGLE) return f->outputs[0];
    PyObject *result = p->returns == RETURN_TUPLE ? PyTuple_New(p->n_out) : PyList_New(p->n_out);
    for (Py_ssize_t i = 0; i < p->n_out; i++) {
        if (!result) Py_DECREF(f->outputs[i]);
        else if (p->returns == RETURN_TUPLE) PyTuple_SET_ITEM(result, i, f->outputs[i]);
        else PyList_SET_ITEM(result, i, f->outputs[i]);
    }
    return result;
}

enum outcome { DONE, FAILED, MISMATCH, CODE };

/* Check, allocate, call. FAILED has set an error; the other outcomes leave no reference behind. */
static enum outcome call_in(Program *p, Frame *f, PyObject *const *args, PyObject **result, int64_t *code) {
    for (Py_ssize_t i = 0; i < p->n_in; i++) {
        PyObject *value = f->inputs[i] = p->bound[i] ? p->bound[i] : *args++;
        f->buffers[i] = take_input(p->slots + i, value, f->dim, f->scalars + i * SCALAR_BYTES);
        if (!f->buffers[i]) return PyErr_Occurred() ? FAILED : MISMATCH;
    }
    if (!sizes_agree(p, f->inputs, f->dim)) return MISMATCH;

    enum outcome outcome = FAILED;
    char on_stack[STACK_ARENA] __attribute__((aligned(64)));
    char *arena = on_stack;
    size_t total = 0;
    Py_ssize_t made = 0;
    for (; made < p->n_out; made++) {
        int fits = 1;
        f->outputs[made] = new_output(p->slots + p->n_in + made, f->dim, &fits, &total);
        if (!f->outputs[made]) {
            outcome = fits ? FAILED : MISMATCH;
            goto undo;
        }
        f->buffers[p->n_in + made] = PyArray_DATA((PyArrayObject *)f->outputs[made]);
    }
    int64_t scratch = p->arena ? p->arena(f->dim) : 0;
    if (scratch > STACK_ARENA && !(arena = pool_take((size_t)scratch))) {
        PyErr_NoMemory();
        goto undo;
    }
    *code = run(p, f->buffers, f->dim, arena, total + (size_t)(scratch > 0 ? scratch : 0));
    if (arena != on_stack) pool_give(arena);
    if (!*code) {
        *result = collect(p, f);
        return *result ? DONE : FAILED;
    }
    outcome = CODE;
undo:
    while (made) Py_DECREF(f->outputs[--made]);
    return outcome;
}

static enum outcome call(Program *p, PyObject *const *args, PyObject **result, int64_t *code) {
    Frame frame;
    char on_stack[SCRATCH] __attribute__((aligned(16)));
    size_t need = lay_out(p, &frame, on_stack);
    if (need <= SCRATCH) return call_in(p, &frame, args, result, code);
    char *block = PyMem_Malloc(need);
    if (!block) return PyErr_NoMemory(), FAILED;
    lay_out(p, &frame, block);
    enum outcome outcome = call_in(p, &frame, args, result, code);
    PyMem_Free(block);
    return outcome;
}

static PyObject *report_code(Program *p, PyObject *const *args, int64_t code) {
    PyObject *given = PyTuple_New(p->n_args);
    if (!given) return NULL;
    for (Py_ssize_t i = 0; i < p->n_args; i++) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    PyObject *result = PyObject_CallFunction(p->on_code, "LO", (long long)code, given);
    Py_DECREF(given);
    return result;
}

static PyObject *program_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Program *p = (Program *)self;
    PyObject *result;
    int64_t code;
    if (PyVectorcall_NARGS(nargsf) == p->n_args && (!kwnames || !PyTuple_GET_SIZE(kwnames))) {
        switch (call(p, args, &result, &code)) {
        case DONE: return result;
        case FAILED: return NULL;
        case CODE: return report_code(p, args, code);
        case MISMATCH: break;
        }
    }
    return PyObject_Vectorcall(p->on_mismatch, args, nargsf, kwnames);
}

PyDoc_STRVAR(exact_doc, "exact(*args)\n--\n\nCall; on a mismatch return NotImplemented instead of calling on_mismatch.");

static PyObject *program_exact(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Program *p = (Program *)self;
    PyObject *result;
    int64_t code;
    if (n == p->n_args) {
        switch (call(p, args, &result, &code)) {
        case DONE: return result;
        case FAILED: return NULL;
        case CODE: return report_code(p, args, code);
        case MISMATCH: break;
        }
    }
    Py_RETURN_NOTIMPLEMENTED;
}

/* ------------------------------------------------------------------------------- making a program */

/* Copy one size (an int, or a tuple of postfix code) to `axis`; code goes to `*next`. */
static int read_axis(Program *p, PyObject *size, Axis *axis, int64_t **next) {
    if (!PyTuple_Check(size)) {
        axis->kind = FIXED;
        axis->value = PyLong_AsLongLong(size);
        return axis->value == -1 && PyErr_Occurred() ? -1 : 0;
    }
    Py_ssize_t length = PyTuple_GET_SIZE(size);
    int64_t *code = *next;
    for (Py_ssize_t i = 0; i < length; i++) {
        code[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(size, i));
        if (code[i] == -1 && PyErr_Occurred()) return -1;
    }
    if (!code_is_sound(code, length, p->n_dims)) {
        PyErr_SetString(PyExc_ValueError, "a size program is malformed or too deep");
        return -1;
    }
    int lone = length == 3 && code[0] == DIM;
    axis->kind = lone ? AGREE : COMPUTED;
    axis->value = lone ? code[1] : 0;
    axis->code = code;
    *next = code + length;
    return 0;
}

static int read_slot(Program *p, PyObject *type, Slot *slot, Axis **axes, int64_t **next, char *seen) {
    PyArray_Descr *descr;
    PyObject *shape;
    if (!PyArg_ParseTuple(type, "O!O!", &PyArrayDescr_Type, &descr, &PyTuple_Type, &shape)) return -1;
    Py_XSETREF(slot->descr, (PyArray_Descr *)Py_NewRef((PyObject *)descr));
    slot->ndim = (int)PyTuple_GET_SIZE(shape);
    slot->axes = *axes;
    *axes += slot->ndim;
    if (slot->ndim > NPY_MAXDIMS || PyDataType_ELSIZE(descr) > SCALAR_BYTES || PyDataType_REFCHK(descr)) {
        PyErr_SetString(PyExc_ValueError, "a dtype or rank that programs do not take");
        return -1;
    }
    for (int i = 0; i < slot->ndim; i++) {
        Axis *axis = slot->axes + i;
        if (read_axis(p, PyTuple_GET_ITEM(shape, i), axis, next)) return -1;
        slot->computed |= axis->kind == COMPUTED;
        if (seen && axis->kind == AGREE && !seen[axis->value]) {
            axis->kind = BIND;
            seen[axis->value] = 1;
        }
    }
    return 0;
}

/* Count axes and words of code of a sequence of (dtype, shape) pairs. */
static int measure(PyObject *types, Py_ssize_t *axes, Py_ssize_t *words) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); i++) {
        PyObject *dtype, *shape;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(types, i), "OO!", &dtype, &PyTuple_Type, &shape)) return -1;
        *axes += PyTuple_GET_SIZE(shape);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); k++) {
            PyObject *size = PyTuple_GET_ITEM(shape, k);
            if (PyTuple_Check(size)) *words += PyTuple_GET_SIZE(size);
        }
    }
    return 0;
}

static int fill(Program *p, PyObject *inputs, PyObject *outputs, PyObject *checks, PyObject *bound) {
    Py_ssize_t n_axes = 0, n_words = 0;
    p->n_in = PyTuple_GET_SIZE(inputs), p->n_out = PyTuple_GET_SIZE(outputs);
    p->n_checks = PyTuple_GET_SIZE(checks);
    if (measure(inputs, &n_axes, &n_words) || measure(outputs, &n_axes, &n_words)) return -1;
    for (Py_ssize_t i = 0; i < p->n_checks; i++)
        n_words += PyTuple_Check(PyTuple_GET_ITEM(checks, i)) ? PyTuple_GET_SIZE(PyTuple_GET_ITEM(checks, i)) : 0;
    p->slots = PyMem_Calloc((size_t)(p->n_in + p->n_out) + 1, sizeof *p->slots);
    p->axes = PyMem_Calloc((size_t)n_axes + 1, sizeof *p->axes);
    p->code = PyMem_Calloc((size_t)n_words + 1, sizeof *p->code);
    p->bound = PyMem_Calloc((size_t)p->n_in + 1, sizeof *p->bound);
    p->checks = PyMem_Calloc((size_t)p->n_checks + 1, sizeof *p->checks);
    char *seen = PyMem_Calloc((size_t)p->n_dims + 1, 1);
    int status = -1;
    if (!p->slots || !p->axes || !p->code || !p->bound || !p->checks || !seen) {
        PyErr_NoMemory();
        goto end;
    }
    int64_t *next = p->code;
    Axis *axes = p->axes;
    for (Py_ssize_t i = 0; i < p->n_in; i++)
        if (read_slot(p, PyTuple_GET_ITEM(inputs, i), p->slots + i, &axes, &next, seen)) goto end;
    for (Py_ssize_t i = 0; i < p->n_dims; i++)
        if (!seen[i]) {
            PyErr_Format(PyExc_ValueError, "unknown size %zd is no input's size by itself", i);
            goto end;
        }
    for (Py_ssize_t i = 0; i < p->n_out; i++)
        if (read_slot(p, PyTuple_GET_ITEM(outputs, i), p->slots + p->n_in + i, &axes, &next, NULL)) goto end;
    for (Py_ssize_t i = 0; i < p->n_checks; i++) {
        Axis axis;
        PyObject *check = PyTuple_GET_ITEM(checks, i);
        if (!PyTuple_Check(check)) {
            PyErr_SetString(PyExc_TypeError, "a check is a size program");
            goto end;
        }
        if (read_axis(p, check, &axis, &next)) goto end;
        p->checks[i] = axis.code;
    }
    p->n_args = p->n_in;
    for (Py_ssize_t i = 0; i < p->n_in; i++) {
        PyObject *value = i < PyTuple_GET_SIZE(bound) ? PyTuple_GET_ITEM(bound, i) : Py_None;
        if (value == Py_None) continue;
        p->bound[i] = Py_NewRef(value);
        p->n_args--;
    }
    status = 0;
end:
    PyMem_Free(seen);
    return status;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"entry", "arena", "table", "n_dims", "inputs", "outputs", "checks", "bound",
                            "keep", "on_mismatch", "on_code", "returns", "reject_one", NULL};
    unsigned long long entry, arena, table;
    Py_ssize_t n_dims;
    PyObject *inputs, *outputs, *checks, *bound, *keep, *on_mismatch, *on_code;
    int returns, reject_one;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKKnO!O!O!O!OOOip:Program", names, &entry, &arena, &table,
                                     &n_dims, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &PyTuple_Type,
                                     &checks, &PyTuple_Type, &bound, &keep, &on_mismatch, &on_code, &returns,
                                     &reject_one))
        return NULL;
    if (!entry || n_dims < 0 || (returns == RETURN_SINGLE && PyTuple_GET_SIZE(outputs) != 1))
        return PyErr_SetString(PyExc_ValueError, "no entry, or not one output to return"), NULL;
    Program *p = (Program *)type->tp_alloc(type, 0);
    if (!p) return NULL;
    p->vectorcall = program_call;
    p->entry = (entry_function)(uintptr_t)entry;
    p->arena = (arena_function)(uintptr_t)arena;
    p->table = (void **)(uintptr_t)table;
    p->n_dims = n_dims;
    p->keep = Py_NewRef(keep);
    p->on_mismatch = Py_NewRef(on_mismatch);
    p->on_code = Py_NewRef(on_code);
    p->returns = returns;
    p->reject_one = reject_one;
    if (fill(p, inputs, outputs, checks, bound)) return Py_DECREF(p), NULL;
    return (PyObject *)p;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg) {
    Program *p = (Program *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(p->keep);
    Py_VISIT(p->on_mismatch);
    Py_VISIT(p->on_code);
    for (Py_ssize_t i = 0; p->bound && i < p->n_in; i++) Py_VISIT(p->bound[i]);
    return 0;
}

/* Breaks cycles. What a call needs stays, and a late call finds None where its callbacks were. */
static int program_clear(PyObject *self) {
    Program *p = (Program *)self;
    Py_XSETREF(p->on_mismatch, Py_NewRef(Py_None));
    Py_XSETREF(p->on_code, Py_NewRef(Py_None));
    return 0;
}

static void program_dealloc(PyObject *self) {
    Program *p = (Program *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(p->on_mismatch);
    Py_CLEAR(p->on_code);
    Py_CLEAR(p->keep);
    for (Py_ssize_t i = 0; p->bound && i < p->n_in; i++) Py_CLEAR(p->bound[i]);
    for (Py_ssize_t i = 0; p->slots && i < p->n_in + p->n_out; i++) Py_CLEAR(p->slots[i].descr);
    PyMem_Free(p->slots);
    PyMem_Free(p->axes);
    PyMem_Free(p->code);
    PyMem_Free(p->bound);
    PyMem_Free((void *)p->checks);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef program_methods[] = {
    {"exact", (PyCFunction)(void (*)(void))program_exact, METH_FASTCALL, exact_doc}, {NULL, NULL, 0, NULL}};
static PyMemberDef program_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Program, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyType_Slot program_slots[] = {
    {Py_tp_doc, "A compiled program, called with arrays."},
    {Py_tp_new, program_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, program_traverse},
    {Py_tp_clear, program_clear},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, program_methods},
    {Py_tp_members, program_members},
    {0, NULL}};
static PyType_Spec program_spec = {"lazyarr_launcher.Program", sizeof(Program), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                   program_slots};

/* ------------------------------------------------------------------------------------- the module */

PyDoc_STRVAR(empty_doc, "empty(dtype, shape)\n--\n\nReturn an uninitialised array of the pool, 64-byte aligned.");

static PyObject *module_empty(PyObject *module, PyObject *args) {
    (void)module;
    Slot slot = {0};
    PyObject *shape;
    Axis axes[NPY_MAXDIMS];
    size_t total = 0;
    int fits = 1;
    if (!PyArg_ParseTuple(args, "O!O!", &PyArrayDescr_Type, &slot.descr, &PyTuple_Type, &shape)) return NULL;
    slot.ndim = (int)PyTuple_GET_SIZE(shape), slot.axes = axes;
    if (slot.ndim > NPY_MAXDIMS || PyDataType_REFCHK(slot.descr))
        return PyErr_SetString(PyExc_ValueError, "a dtype or rank that the pool does not hold"), NULL;
    for (int i = 0; i < slot.ndim; i++) {
        axes[i].kind = FIXED;
        axes[i].value = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (axes[i].value == -1 && PyErr_Occurred()) return NULL;
    }
    PyObject *array = new_output(&slot, NULL, &fits, &total);
    if (!array && fits == 0) PyErr_SetString(PyExc_ValueError, "a negative size");
    return array;
}

PyDoc_STRVAR(limit_doc, "pool_limit(bytes)\n--\n\nSet how much freed memory is kept for new results; return the old limit.");

static PyObject *module_pool_limit(PyObject *module, PyObject *value) {
    (void)module;
    size_t limit = PyLong_AsSize_t(value), old;
    if (limit == (size_t)-1 && PyErr_Occurred()) return NULL;
    char *doomed[LARGE_KEPT];
    int n = 0;
    LOCK_POOL;
    old = large_limit, large_limit = limit;
    while (large_count && large_bytes > large_limit) {
        doomed[n++] = large_free[0];
        drop_large(0);
    }
    UNLOCK_POOL;
    while (n) system_free(doomed[--n]);
    return PyLong_FromSize_t(old);
}

static PyMethodDef module_methods[] = {{"empty", module_empty, METH_VARARGS, empty_doc},
                                       {"pool_limit", module_pool_limit, METH_O, limit_doc},
                                       {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "lazyarr_launcher",
                                        "Calls compiled programs.", -1, module_methods,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_lazyarr_launcher(void) {
    import_array();
    PyObject *module = PyModule_Create(&module_def);
    if (!module) return NULL;
    handler_capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    PyObject *type = PyType_FromSpec(&program_spec);
    if (!handler_capsule || !type || PyModule_AddObjectRef(module, "Program", type)) {
        Py_XDECREF(type);
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(type);
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
