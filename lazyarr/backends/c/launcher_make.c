/* Making programs, and the module. The last of the files that make up the extension module. */

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

static int fill(Program *p, PyObject *inputs, PyObject *outputs, PyObject *checks, PyObject *bound,
                PyObject *scratch) {
    Py_ssize_t n_axes = 0, n_words = 0;
    p->n_in = PyTuple_GET_SIZE(inputs), p->n_out = PyTuple_GET_SIZE(outputs);
    p->n_checks = PyTuple_GET_SIZE(checks);
    if (measure(inputs, &n_axes, &n_words) || measure(outputs, &n_axes, &n_words)) return -1;
    for (Py_ssize_t i = 0; i < p->n_checks; i++)
        n_words += PyTuple_Check(PyTuple_GET_ITEM(checks, i)) ? PyTuple_GET_SIZE(PyTuple_GET_ITEM(checks, i)) : 0;
    if (scratch && PyTuple_Check(scratch)) n_words += PyTuple_GET_SIZE(scratch);
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
    if (scratch && read_axis(p, scratch, &p->scratch, &next)) goto end;
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

/* Copy which inputs are donated and which of them each output may take; one serves one output. */
static int read_reuse(Program *p, PyObject *donated, PyObject *reuse) {
    p->reuse = PyMem_Calloc((size_t)p->n_out + 1, sizeof *p->reuse);
    if (!p->reuse) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; donated && i < PyTuple_GET_SIZE(donated); i++) {
        Py_ssize_t k = PyLong_AsSsize_t(PyTuple_GET_ITEM(donated, i));
        if (k < 0 || k >= p->n_in) return PyErr_SetString(PyExc_ValueError, "there is no such input"), -1;
        p->slots[k].donated = 1;
    }
    for (Py_ssize_t k = 0; k < p->n_out; k++) {
        p->reuse[k] = reuse && k < PyTuple_GET_SIZE(reuse) ? PyLong_AsSsize_t(PyTuple_GET_ITEM(reuse, k)) : -1;
        if (p->reuse[k] == -1 && PyErr_Occurred()) return -1;
        int good = p->reuse[k] < p->n_in && (p->reuse[k] < 0 || !p->bound[p->reuse[k]]);
        for (Py_ssize_t i = 0; i < k; i++) good &= p->reuse[k] < 0 || p->reuse[i] != p->reuse[k];
        if (!good) return PyErr_SetString(PyExc_ValueError, "no output may take this input's memory"), -1;
    }
    return 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"entry", "arena", "table", "n_dims", "inputs", "outputs", "checks", "bound",
                            "keep", "on_mismatch", "on_code", "returns", "reject_one", "trust", "donated", "reuse",
                            "scratch", "done", NULL};
    unsigned long long entry, arena, table;
    Py_ssize_t n_dims;
    PyObject *inputs, *outputs, *checks, *bound, *keep, *on_mismatch, *on_code, *donated = NULL, *reuse = NULL, *scratch = NULL;
    int returns, reject_one, trust = 0;
    long long done = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKKnO!O!O!O!OOOip|pO!O!OL:Program", names, &entry, &arena, &table,
                                     &n_dims, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &PyTuple_Type,
                                     &checks, &PyTuple_Type, &bound, &keep, &on_mismatch, &on_code, &returns,
                                     &reject_one, &trust, &PyTuple_Type, &donated, &PyTuple_Type, &reuse, &scratch, &done))
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
    p->trust = trust;
    p->done = done;
    if (fill(p, inputs, outputs, checks, bound, scratch) || read_reuse(p, donated, reuse)) return Py_DECREF(p), NULL;
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
    PyMem_Free(p->reuse);
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
