
/* Walks a recorded expression once: what is pending, its key, what else is worth keeping, and the
   arguments of its program; then calls the program and publishes the results. The Python code in
   `backends/structure.py` and `backends/implicit.py` says what each of these is; keys are the same.

   Whatever is not common (a symbol below, a loop, a structure without a plan) is left to Python. No
   Python code runs between the first node read and the last, so the reading is one moment in time. */

typedef struct {
    PyObject *node;         /* kept alive by the expressions read */
    PyObject *value, *expr; /* owned; value is NULL where the node is pending */
    int64_t seq;
    int32_t uses, place;
} Seen;

enum { FEW = 96, FEW_PLACES = 256, FEW_WORDS = 768, MOST_DIMS = 64 };

typedef struct {
    Seen *seen;
    int32_t *places; /* open addressing: 1 + index of a node, 0 where free */
    int32_t *order;
    Py_ssize_t n, room, n_places;
    long dims[MOST_DIMS]; /* the names of dimensions, as they are met */
    int n_dims;
    Seen few[FEW];
    int32_t few_places[FEW_PLACES], few_order[FEW];
} Walk;

typedef struct { int32_t *word; Py_ssize_t n, room; int32_t few[FEW_WORDS]; } Words;

static PyTypeObject *plain_type, *named_type;
static Py_ssize_t type_code_at, call_code_at, op_at, dims_at, names_at;
static PyObject *bakes, *number_word, *numbers, *as_argument, *phantoms, *track;
static Py_ssize_t tracked;
static long most_history;
static int32_t float_word, int_word;

static void start(Walk *w) {
    w->seen = w->few, w->places = w->few_places, w->order = w->few_order;
    w->n = 0, w->n_dims = 0, w->room = FEW, w->n_places = FEW_PLACES;
    memset(w->few_places, 0, sizeof w->few_places);
}

static void finish(Walk *w) {
    for (Py_ssize_t i = 0; i < w->n; i++) {
        Py_XDECREF(w->seen[i].value);
        Py_XDECREF(w->seen[i].expr);
    }
    if (w->seen != w->few) free(w->seen);
    if (w->places != w->few_places) free(w->places);
    if (w->order != w->few_order) free(w->order);
}

static size_t hash_of(const PyObject *node) { return ((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15u >> 20; }

static int grow(Walk *w) {
    Py_ssize_t room = 2 * w->room, n_places = 4 * w->n_places;
    Seen *seen = malloc((size_t)room * sizeof *seen);
    int32_t *places = calloc((size_t)n_places, sizeof *places);
    int32_t *order = malloc((size_t)room * sizeof *order);
    if (!seen || !places || !order) return free(seen), free(places), free(order), PyErr_NoMemory(), -1;
    memcpy(seen, w->seen, (size_t)w->n * sizeof *seen);
    for (Py_ssize_t i = 0; i < w->n; i++) {
        size_t p = hash_of(seen[i].node) & (size_t)(n_places - 1);
        while (places[p]) p = (p + 1) & (size_t)(n_places - 1);
        places[p] = (int32_t)i + 1;
    }
    if (w->seen != w->few) free(w->seen);
    if (w->places != w->few_places) free(w->places);
    if (w->order != w->few_order) free(w->order);
    w->seen = seen, w->places = places, w->order = order;
    w->room = room, w->n_places = n_places;
    return 0;
}

/* Return the index of a node, read when it is met first; -1 with an error set. */
static Py_ssize_t meet(Walk *w, PyObject *node) {
    size_t p = hash_of(node) & (size_t)(w->n_places - 1);
    for (; w->places[p]; p = (p + 1) & (size_t)(w->n_places - 1))
        if (w->seen[w->places[p] - 1].node == node) return w->places[p] - 1;
    if (w->n == w->room) {
        if (grow(w)) return -1;
        for (p = hash_of(node) & (size_t)(w->n_places - 1); w->places[p];) p = (p + 1) & (size_t)(w->n_places - 1);
    }
    w->places[p] = (int32_t)w->n + 1;
    Seen *s = w->seen + w->n;
    PyObject *value = SLOT(node, at.value);
    s->node = node;
    s->expr = Py_XNewRef(SLOT(node, at.expr));
    s->value = value == unset ? NULL : Py_XNewRef(value);
    s->seq = PyLong_AsLongLong(SLOT(node, at.seq));
    s->uses = 0;
    return w->n++;
}

static int compare(const void *a, const void *b) {
    const Seen *x = *(const Seen *const *)a, *y = *(const Seen *const *)b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Order the nodes as they were made. */
static int sort(Walk *w) {
    if (w->n > FEW) {
        Seen **sorted = malloc((size_t)w->n * sizeof *sorted);
        if (!sorted) return PyErr_NoMemory(), -1;
        for (Py_ssize_t i = 0; i < w->n; i++) sorted[i] = w->seen + i;
        qsort(sorted, (size_t)w->n, sizeof *sorted, compare);
        for (Py_ssize_t i = 0; i < w->n; i++) w->order[i] = (int32_t)(sorted[i] - w->seen);
        free(sorted);
    } else {
        for (Py_ssize_t i = 0; i < w->n; i++) { /* they were met about in reverse */
            int32_t x = (int32_t)(w->n - 1 - i);
            Py_ssize_t k = i;
            for (; k > 0 && w->seen[w->order[k - 1]].seq > w->seen[x].seq; k--) w->order[k] = w->order[k - 1];
            w->order[k] = x;
        }
    }
    for (Py_ssize_t i = 0; i < w->n; i++) w->seen[w->order[i]].place = (int32_t)i;
    return 0;
}

/* Read all that roots depend on. 1 done, 0 for Python to do, -1 with an error set. */
static int walk_from(Walk *w, PyObject *roots) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(roots); i++) {
        PyObject *node = PyList_GET_ITEM(roots, i);
        if (Py_TYPE(node) != variable_type) return 0;
        Py_ssize_t k = meet(w, node);
        if (k < 0) return -1;
        if (k != i || w->seen[k].value) return 0;
    }
    for (Py_ssize_t i = 0; i < w->n; i++) {
        PyObject *type = SLOT(w->seen[i].node, at.type), *expr = w->seen[i].expr;
        if (Py_TYPE(type) != plain_type && Py_TYPE(type) != named_type) return 0;
        if (w->seen[i].value) continue;
        if (!expr || !PyTuple_CheckExact(expr)) return 0;
        for (Py_ssize_t j = 1; j < PyTuple_GET_SIZE(expr); j++) {
            PyObject *x = PyTuple_GET_ITEM(expr, j);
            if (Py_TYPE(x) != variable_type) continue;
            Py_ssize_t k = meet(w, x);
            if (k < 0) return -1;
            w->seen[k].uses++;
        }
    }
    return sort(w) ? -1 : 1;
}

/* ---------------------------------------------------------------------------------------- the key */

static int push(Words *words, long word) {
    if (words->n == words->room) {
        int32_t *more = malloc(2 * (size_t)words->room * sizeof *more);
        if (!more) return PyErr_NoMemory(), -1;
        memcpy(more, words->word, (size_t)words->n * sizeof *more);
        if (words->word != words->few) free(words->word);
        words->word = more, words->room *= 2;
    }
    words->word[words->n++] = (int32_t)word;
    return 0;
}

/* The number of a call or a type, which it keeps. -1 with an error set. */
static long code_of(PyObject *object, Py_ssize_t code_at) {
    PyObject *kept = SLOT(object, code_at);
    if (kept && kept != Py_None) return PyLong_AsLong(kept);
    PyObject *made = PyObject_GetAttrString(object, "code");
    if (!made) return -1;
    long code = PyLong_AsLong(made);
    Py_DECREF(made);
    return code;
}

static int push_number(Words *words, PyObject *call, PyObject *x) {
    if (SLOT(call, op_at) == bakes) {
        PyObject *made = PyObject_CallFunctionObjArgs(number_word, call, x, NULL);
        if (!made) return -1;
        long word = PyLong_AsLong(made);
        Py_DECREF(made);
        return push(words, word);
    }
    if (PyFloat_CheckExact(x)) return push(words, float_word);
    if (PyLong_CheckExact(x)) return push(words, int_word);
    PyObject *word = PyDict_GetItemWithError(numbers, (PyObject *)Py_TYPE(x));
    if (!word) return PyErr_Occurred() ? -1 : (PyErr_SetObject(PyExc_KeyError, (PyObject *)Py_TYPE(x)), -1);
    return push(words, PyLong_AsLong(word));
}

/* Push the numbers of names. New ones of a type are added; the names of a call need not be dims. */
static int push_names(Walk *w, Words *words, PyObject *codes, int add) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(codes); i++) {
        long code = PyLong_AsLong(PyTuple_GET_ITEM(codes, i));
        int k = 0;
        while (k < w->n_dims && w->dims[k] != code) k++;
        if (k == w->n_dims && add) {
            if (k == MOST_DIMS) return -1; /* without an error set: for Python to do */
            w->dims[w->n_dims++] = code;
        }
        if (push(words, k < w->n_dims ? k : -1)) return -1;
    }
    return 0;
}

static int push_node(Walk *w, Words *words, const Seen *s) {
    PyObject *type = SLOT(s->node, at.type), *expr = s->expr;
    PyObject *call = s->value ? NULL : PyTuple_GET_ITEM(expr, 0);
    long code = call ? code_of(call, call_code_at) : -1, type_code = code_of(type, type_code_at);
    if (PyErr_Occurred() || push(words, code) || push(words, type_code)) return -1;
    if (Py_TYPE(type) == named_type && push_names(w, words, SLOT(type, dims_at), 1)) return -1;
    if (!call) return 0;
    Py_ssize_t n = PyTuple_GET_SIZE(expr);
    if (push_names(w, words, SLOT(call, names_at), 0) || push(words, n - 1)) return -1;
    for (Py_ssize_t j = 1; j < n; j++) {
        PyObject *x = PyTuple_GET_ITEM(expr, j);
        int failed = Py_TYPE(x) == variable_type ? push(words, w->seen[meet(w, x)].place)
                                                 : push_number(words, call, x);
        if (failed) return -1;
    }
    return 0;
}

/* Does anything outside refer to a pending node, and is it worth keeping? */
static int is_held(const Seen *s) {
    if (s->value || Py_REFCNT(s->node) <= s->uses) return 0;
    PyObject *op = SLOT(PyTuple_GET_ITEM(s->expr, 0), op_at);
    PyObject *kind = PyObject_GetAttrString(op, "kind");
    if (!kind) return -1;
    int keep = !PyUnicode_Check(kind) || PyUnicode_CompareWithASCIIString(kind, "creation");
    Py_DECREF(kind);
    return keep;
}

/* Return the key; the outputs are the last `*n_out` of its words. */
static PyObject *key_of(Walk *w, Py_ssize_t n_roots, Words *words, Py_ssize_t *n_out) {
    words->word = words->few, words->n = 0, words->room = FEW_WORDS;
    PyObject *key = NULL;
    if (push(words, w->n) || push(words, n_roots)) goto done;
    for (Py_ssize_t i = 0; i < w->n; i++)
        if (push_node(w, words, w->seen + w->order[i])) goto done;
    *n_out = n_roots;
    for (Py_ssize_t i = 0; i < n_roots; i++)
        if (push(words, w->seen[i].place)) goto done;
    for (Py_ssize_t i = 0; i < w->n; i++) {
        if (w->order[i] < n_roots) continue;
        int held = is_held(w->seen + w->order[i]);
        if (held < 0 || (held && push(words, i))) goto done;
        *n_out += held;
    }
    words->word[1] = (int32_t)*n_out;
    key = PyBytes_FromStringAndSize((const char *)words->word, words->n * (Py_ssize_t)sizeof *words->word);
done:
    return key;
}

static void drop(Words *words) {
    if (words->word != words->few) free(words->word);
}

/* ---------------------------------------------------------------- arguments, the call, the results */

/* Return a list of the arguments that a plan (see `Entry.plan`) takes from an expression. */
static PyObject *gather(const Walk *w, PyObject *plan) {
    PyObject *slots = PyTuple_GET_ITEM(plan, 1), *wanted = PyTuple_GET_ITEM(plan, 2);
    PyObject *sized = PyTuple_GET_ITEM(plan, 3);
    Py_ssize_t n = PyTuple_GET_SIZE(slots) / 3, n_sized = PyTuple_GET_SIZE(sized);
    PyObject *values = PyList_New(n);
    for (Py_ssize_t i = 0; values && i < n; i++) {
        long word[3];
        for (int k = 0; k < 3; k++) word[k] = PyLong_AsLong(PyTuple_GET_ITEM(slots, 3 * i + k));
        const Seen *s = w->seen + w->order[word[0]];
        PyObject *x = word[1] ? PyTuple_GET_ITEM(s->expr, word[1]) : s->value;
        x = word[2] ? PyObject_CallFunctionObjArgs(as_argument, x, PyTuple_GET_ITEM(wanted, word[2] - 1), NULL)
                    : Py_NewRef(x);
        if (!x) Py_CLEAR(values);
        else PyList_SET_ITEM(values, i, x);
    }
    if (!values || !n_sized) return values;
    PyObject *calls = PyList_New(n_sized), *arrays = NULL;
    for (Py_ssize_t i = 0; calls && i < n_sized; i++) {
        const Seen *s = w->seen + w->order[PyLong_AsLong(PyTuple_GET_ITEM(sized, i))];
        PyList_SET_ITEM(calls, i, Py_NewRef(PyTuple_GET_ITEM(s->expr, 0)));
    }
    if (calls) arrays = PyObject_CallOneArg(phantoms, calls);
    if (!arrays || PyList_SetSlice(values, n, n, arrays)) Py_CLEAR(values);
    Py_XDECREF(calls);
    Py_XDECREF(arrays);
    return values;
}

/* Store a value in a node for all to see. */
static int publish(PyObject *node, PyObject *value, long history) {
    PyObject *made = PyArray_Check(value) ? Py_NewRef(value) : PyArray_FromAny(value, NULL, 0, 0, 0, NULL);
    if (!made) return -1;
    PyArray_CLEARFLAGS((PyArrayObject *)made, NPY_ARRAY_WRITEABLE);
    PyObject *done = PyArray_NBYTES((PyArrayObject *)made) < tracked ? Py_NewRef(Py_None)
                                                                     : PyObject_CallOneArg(track, made);
    PyObject *depth = PyLong_FromLong(history);
    if (!done || !depth) return Py_DECREF(made), Py_XDECREF(done), Py_XDECREF(depth), -1;
    Py_DECREF(done);
    PyObject *old = SLOT(node, at.value), *before = SLOT(node, at.depth);
    SLOT(node, at.value) = made, SLOT(node, at.depth) = depth;
    Py_XDECREF(old);
    Py_XDECREF(before);
    if (history < -most_history) Py_XSETREF(SLOT(node, at.expr), Py_NewRef(Py_None));
    return 0;
}

static int run_plan(const Walk *w, PyObject *plan, const int32_t *outputs, Py_ssize_t n_out) {
    long history = 0;
    for (Py_ssize_t i = 0; i < w->n; i++) {
        long depth = w->seen[i].value ? PyLong_AsLong(SLOT(w->seen[i].node, at.depth)) : 0;
        if (depth < history) history = depth;
    }
    PyObject *values = gather(w, plan), *results = NULL;
    if (values) {
        PyObject **items = ((PyListObject *)values)->ob_item;
        results = PyObject_Vectorcall(PyTuple_GET_ITEM(plan, 0), items, (size_t)PyList_GET_SIZE(values), NULL);
        Py_DECREF(values);
    }
    if (!results) return -1;
    int failed = 0;
    if (!PyList_Check(results) || PyList_GET_SIZE(results) != n_out) {
        PyErr_SetString(PyExc_RuntimeError, "a program returned another number of results");
        failed = 1;
    }
    PyObject *nodes = failed ? NULL : PyList_New(n_out); /* publishing may free what refers to them */
    for (Py_ssize_t i = 0; nodes && i < n_out; i++)
        PyList_SET_ITEM(nodes, i, Py_NewRef(w->seen[w->order[outputs[i]]].node));
    for (Py_ssize_t i = 0; nodes && !failed && i < n_out; i++)
        failed = publish(PyList_GET_ITEM(nodes, i), PyList_GET_ITEM(results, i), history - 1);
    failed |= !nodes;
    Py_XDECREF(nodes);
    Py_DECREF(results);
    return failed ? -1 : 0;
}

PyDoc_STRVAR(force_doc, "force(missing, plans)\n--\n\nCompute nodes whose structure has a plan; False for Python to do.");

static PyObject *force(PyObject *module, PyObject *const *args, Py_ssize_t n_args) {
    (void)module;
    if (n_args != 2 || !PyList_Check(args[0]) || !PyDict_Check(args[1]) || !plain_type)
        return PyErr_SetString(PyExc_TypeError, "force takes a list and a dict, after set_walker"), NULL;
    Walk w;
    Words words;
    Py_ssize_t n_out = 0;
    start(&w);
    int outcome = walk_from(&w, args[0]);
    if (outcome > 0) {
        PyObject *key = key_of(&w, PyList_GET_SIZE(args[0]), &words, &n_out);
        PyObject *plan = key ? Py_XNewRef(PyDict_GetItemWithError(args[1], key)) : NULL;
        Py_XDECREF(key);
        outcome = plan ? 1 : PyErr_Occurred() ? -1 : 0;
        if (plan && run_plan(&w, plan, words.word + words.n - n_out, n_out)) outcome = -1;
        Py_XDECREF(plan);
        drop(&words);
    }
    finish(&w);
    return outcome < 0 ? NULL : PyBool_FromLong(outcome);
}

PyDoc_STRVAR(key_doc, "key(nodes)\n--\n\nReturn the key of nodes and what else it keeps; None for Python to do.");

static PyObject *key(PyObject *module, PyObject *nodes) {
    (void)module;
    if (!PyList_Check(nodes)) return PyErr_SetString(PyExc_TypeError, "key takes a list"), NULL;
    Walk w;
    Words words;
    Py_ssize_t n_out = 0, n_roots = PyList_GET_SIZE(nodes);
    PyObject *result = NULL;
    start(&w);
    int outcome = walk_from(&w, nodes);
    if (outcome > 0) {
        PyObject *made = key_of(&w, n_roots, &words, &n_out);
        PyObject *held = made ? PyList_New(n_out - n_roots) : NULL;
        const int32_t *outputs = made ? words.word + words.n - n_out + n_roots : NULL;
        for (Py_ssize_t i = 0; held && i < n_out - n_roots; i++)
            PyList_SET_ITEM(held, i, Py_NewRef(w.seen[w.order[outputs[i]]].node));
        if (held) result = PyTuple_Pack(2, made, held);
        Py_XDECREF(made);
        Py_XDECREF(held);
        drop(&words);
    } else if (!outcome) {
        result = Py_NewRef(Py_None);
    }
    if (!result && !PyErr_Occurred()) result = Py_NewRef(Py_None);
    finish(&w);
    return result;
}
