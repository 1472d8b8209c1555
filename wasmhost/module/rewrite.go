package module

import (
	"fmt"
	"strconv"
	"strings"
)

// Prepare checks that a binary is a job, and rewrites it. wasm is neither
// kept nor changed. The error is a *FormatError when the file is no module
// that can be read, and a *NotJobError when the module is not a job.
func Prepare(wasm []byte, o Options) (*Prepared, error) {
	if o.Interval < 0 || o.Interval > maxInterval {
		return nil, fmt.Errorf("safepoint interval %d: must be between 0 and %d", o.Interval, maxInterval)
	}
	m, err := parse(wasm, o.Limits)
	if err != nil {
		return nil, err
	}
	info := m.info()
	if problems := info.JobProblems(o); len(problems) > 0 {
		return nil, &NotJobError{Problems: problems, NoSDK: info.plain(o)}
	}
	w := rewriter{parsed: m, interval: o.Interval, maxPages: o.maxPages(), yield: info.importedFunction(o.Yield)}
	p := &Prepared{Code: w.rewrite(), Globals: w.globalNames(), Added: len(m.funcs), Info: *info}
	if m.startFunc >= 0 {
		p.Start = startName
	}
	return p, nil
}

// ownYield is a yield function that the rewriter appends, for modules that
// import none: only tests have such.
const ownYield = -1

// rewriter writes the module that is run.
type rewriter struct {
	*parsed
	interval int32
	maxPages uint32 // 0 leaves memories as they are
	yield    int    // function index or ownYield

	out     []byte
	scratch []byte
	counter uint32 // index of the safepoint counter
	settle  []byte // see settlement

	added       []helper // functions, in the order of their indices
	addedTypes  []uint32 // of each, the index of its type
	newTypes    int      // at the end of types, those that the module lacks
	helperIndex [helpers]uint32
}

// mutableGlobals are the indices of what is captured, the counter last.
func (w *rewriter) mutableGlobals() (indices []uint32) {
	for i, g := range w.globals {
		if g.mutable {
			indices = append(indices, uint32(i))
		}
	}
	return append(indices, uint32(len(w.globals)))
}

func (w *rewriter) globalNames() (names []string) {
	for i := range w.mutableGlobals() {
		names = append(names, globalPrefix+strconv.Itoa(i))
	}
	return names
}

func (w *rewriter) rewrite() []byte {
	w.counter = uint32(len(w.globals))
	added := []byte{sectionGlobal, sectionExport}
	if w.interval > 0 {
		w.needs[helpYield] = w.yield == ownYield
		w.addHelpers()
		if w.yield == ownYield {
			w.yield = int(w.helperIndex[helpYield])
		}
		if len(w.added) > 0 {
			added = []byte{sectionType, sectionFunction, sectionGlobal, sectionExport, sectionCode}
		}
		w.settle = w.settlement()
	}

	w.out = make([]byte, 0, len(w.wasm)+len(w.wasm)/8+len(w.edits)*32+1024)
	w.out = append(append(w.out, magic...), version...)
	present := map[byte]bool{}
	for _, s := range w.sections {
		present[s.id] = true
	}
	// addUpTo writes the sections that the module lacks and that stand before a
	// rank.
	addUpTo := func(rank int) {
		for len(added) > 0 && sectionRanks[added[0]] <= rank {
			if !present[added[0]] {
				w.section(&section{id: added[0]})
			}
			added = added[1:]
		}
	}
	for i := range w.sections {
		s := &w.sections[i]
		if s.id != sectionCustom {
			addUpTo(sectionRanks[s.id])
		}
		w.section(s)
	}
	addUpTo(sectionRanks[sectionData])
	return w.out
}

// section writes one section. That of a section which the module lacks has no
// bytes.
func (w *rewriter) section(s *section) {
	switch {
	case s.id == sectionCustom && strings.HasPrefix(s.name, ".debug_"):
		// Debugging information speaks of offsets in the code, which have moved:
		// it would put wrong lines into stack traces.
	case s.id == sectionStart:
		// The start function is exported instead.
	case s.id == sectionType && w.newTypes > 0:
		var items []byte
		for _, t := range w.types[len(w.types)-w.newTypes:] {
			items = t.append(items)
		}
		w.extend(s, uint32(w.newTypes), items)
	case s.id == sectionFunction && len(w.added) > 0:
		var items []byte
		for _, t := range w.addedTypes {
			items = appendU32(items, t)
		}
		w.extend(s, uint32(len(w.added)), items)
	case s.id == sectionMemory && w.maxPages > 0:
		w.writeMemories()
	case s.id == sectionGlobal:
		w.extend(s, 1, append(appendI32([]byte{byte(I32), 1, opI32Const}, w.interval), opEnd))
	case s.id == sectionExport:
		w.extendExports(s)
	case s.id == sectionCode && w.interval > 0:
		w.writeCode()
	default:
		w.out = append(w.out, w.wasm[s.head:s.end]...)
	}
}

// extend writes a section, which is a vector, with items added at its end.
func (w *rewriter) extend(s *section, count uint32, items []byte) {
	var n uint32
	var old []byte
	if s.end > 0 {
		var next int
		n, next = u32(w.wasm, s.start)
		old = w.wasm[next:s.end]
	}
	w.head(s.id, sizeU32(n+count)+len(old)+len(items))
	w.out = appendU32(w.out, n+count)
	w.out = append(append(w.out, old...), items...)
}

func (w *rewriter) head(id byte, length int) {
	w.out = appendU32(append(w.out, id), uint32(length))
}

func (w *rewriter) writeMemories() {
	var items []byte
	var n uint32
	for _, m := range w.memories {
		if m.Imported {
			continue
		}
		n++
		most := uint64(w.maxPages)
		if m.HasMax {
			most = min(most, m.Max)
		}
		items = appendU32(appendU32(append(items, limitsMax), uint32(m.Min)), uint32(most))
	}
	w.head(sectionMemory, sizeU32(n)+len(items))
	w.out = append(appendU32(w.out, n), items...)
}

func (w *rewriter) extendExports(s *section) {
	var items []byte
	var n uint32
	export := func(name string, kind Kind, index uint32) {
		items = append(appendU32(items, uint32(len(name))), name...)
		items = appendU32(append(items, byte(kind)), index)
		n++
	}
	names := w.globalNames()
	for i, index := range w.mutableGlobals() {
		export(names[i], KindGlobal, index)
	}
	if w.startFunc >= 0 {
		export(startName, KindFunction, uint32(w.startFunc))
	}
	w.extend(s, n, items)
}

// writeCode writes the function bodies with their safepoints, and those of the
// functions that are added.
func (w *rewriter) writeCode() {
	n := len(w.bodies) + len(w.added)
	length := sizeU32(uint32(n))
	for i := range w.bodies {
		f := &w.bodies[i]
		f.size = w.bodySize(f)
		length += sizeU32(uint32(f.size)) + f.size
	}
	var last []byte
	for _, h := range w.added {
		body := w.helperBody(h)
		last = append(appendU32(last, uint32(len(body))), body...)
	}
	length += len(last)
	w.head(sectionCode, length)
	w.out = appendU32(w.out, uint32(n))
	for i := range w.bodies {
		w.writeBody(&w.bodies[i])
	}
	w.out = append(w.out, last...)
}

// bodySize is the size of a body with its safepoints.
func (w *rewriter) bodySize(f *body) int {
	size := f.end - f.start
	for _, e := range w.edits[f.firstEdit:f.endEdit] {
		inserted, next := w.appendEdit(w.scratch[:0], e)
		size += len(inserted) - (next - int(e.at))
		w.scratch = inserted
	}
	return size
}

func (w *rewriter) writeBody(f *body) {
	w.out = appendU32(w.out, uint32(f.size))
	from := f.start
	for _, e := range w.edits[f.firstEdit:f.endEdit] {
		w.out = append(w.out, w.wasm[from:e.at]...)
		w.out, from = w.appendEdit(w.out, e)
	}
	w.out = append(w.out, w.wasm[from:f.end]...)
}

// appendEdit appends the code of an edit, and returns with which byte of the
// original it goes on. The code leaves the operand stack as it was.
func (w *rewriter) appendEdit(b []byte, e edit) (_ []byte, next int) {
	next = int(e.at)
	switch e.kind {
	case editCharge:
		if e.n > 0 {
			b = append(w.appendCharge(b, e.n), opIf, emptyBlock)
			b = append(w.appendYield(b, 0), opEnd)
		}
	case editLoop:
		next += 2
		loop := w.wasm[e.at:next]
		b = append(b, opBlock, loop[1])
		b = append(b, loop...)
		b = append(b, opBlock, emptyBlock)
		b = append(b, loop...)
		b = append(w.appendCharge(b, e.n), opIf, emptyBlock, opBr, 2, opEnd)
	case editEnd:
		// The loop is about to charge again. Without that in advance, one that
		// charges more than the interval would never go on.
		b = append(b, opBr, 2, opEnd)
		b = append(w.appendYield(b, w.edits[e.n].n), opBr, 0, opEnd, opEnd)
	case editLabel:
		b = appendU32(b, e.n)
		_, next = u32(w.wasm, next)
	case editCall:
		h := helper(e.n)
		b = appendU32(append(b, opCall), w.helperIndex[h])
		if h != helpCharge {
			next = w.endOfBulk(next, h)
		}
	}
	return b, next
}

// appendCharge appends code that subtracts from the counter and leaves on the
// stack whether it has run out.
func (w *rewriter) appendCharge(b []byte, rounds uint32) []byte {
	b = appendU32(append(b, opGlobalGet), w.counter)
	b = appendI32(append(b, opI32Const), int32(rounds))
	return append(b, w.settle...)
}

// appendYield appends code that sets the counter to the interval and extra
// rounds, and calls the host.
func (w *rewriter) appendYield(b []byte, extra uint32) []byte {
	b = appendI32(append(b, opI32Const), w.interval+int32(extra))
	b = appendU32(append(b, opGlobalSet), w.counter)
	return appendU32(append(b, opCall), uint32(w.yield))
}

// settlement is the second half of a charge, below what is to be subtracted.
// From global.set to global.get, the compiler has the counter in a register.
func (w *rewriter) settlement() []byte {
	b := appendU32([]byte{opI32Sub, opGlobalSet}, w.counter)
	b = appendU32(append(b, opGlobalGet), w.counter)
	return append(b, opI32Const, 0, opI32LeS)
}
