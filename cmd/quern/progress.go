package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/quern-project/quern/engine/event"
	"github.com/quern-project/quern/engine/msg"
)

const (
	// barDelay is how long a stage runs before it is worth a bar. Jobs with
	// hundreds of short stages would only flicker.
	barDelay = 500 * time.Millisecond
	// barRefresh is the time between two looks at the counts.
	barRefresh = 150 * time.Millisecond
)

// progress is a listener that shows a bar for each stage which runs for longer
// than a moment, and before them a line that says what is being prepared. Being
// told of an event costs it no more than adding up; a goroutine of its own draws.
type progress struct {
	terminal *terminal
	quit     chan struct{}
	done     chan struct{}

	mu          sync.Mutex
	stages      map[msg.StageAttempt]*stageProgress
	preparation *preparation // nil once the job runs
}

// preparation is what is done before the job runs.
type preparation struct {
	since time.Time
	over  bool
	bar   *mpb.Bar               // nil until barDelay has passed; belongs to the drawing goroutine
	shown atomic.Pointer[string] // such as "building ."; the bar's goroutine reads it
}

type stageProgress struct {
	name    string
	tasks   int
	since   time.Time
	bar     *mpb.Bar // nil until barDelay has passed; belongs to the drawing goroutine
	started int
	ended   int // in whatever way
	ok      int
	failed  int
	over    bool
	// shown is what counts said last. The bar's goroutine reads it: the mutex
	// would be a deadlock there, as draw holds it while it talks to the bar.
	shown atomic.Pointer[string]
}

// startProgress returns a listener that draws on t until it is closed.
func startProgress(t *terminal) *progress {
	p := &progress{
		terminal: t,
		quit:     make(chan struct{}),
		done:     make(chan struct{}),
		stages:   make(map[msg.StageAttempt]*stageProgress),
	}
	go p.drawUntilClosed()
	return p
}

// On adds up what happened.
func (p *progress) On(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case event.StageSubmitted:
		p.stages[e.Stage] = &stageProgress{
			name:  stageName(e),
			tasks: e.Tasks,
			since: time.Now(),
		}
	case event.StageCompleted:
		if s := p.stages[e.Stage]; s != nil {
			s.over = true
		}
	case event.TaskStarted:
		if s := p.stages[e.Stage]; s != nil {
			s.started++
		}
	case event.TaskEnded:
		if s := p.stages[e.Stage]; s != nil {
			s.ended++
			switch e.State {
			case msg.StateFinished:
				s.ok++
			case msg.StateFailed:
				s.failed++
			}
		}
	}
}

// preparing shows what is being done before the job runs, such as "building .";
// "" says that it runs.
func (p *progress) preparing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case what == "":
		if p.preparation != nil {
			p.preparation.over = true
		}
		return
	case p.preparation == nil:
		p.preparation = &preparation{since: time.Now()}
	}
	p.preparation.shown.Store(&what)
}

// stageName says in a few words which part of the job a stage is.
func stageName(e event.StageSubmitted) string {
	name := fmt.Sprintf("stage %d %s", e.Stage.Stage, e.Name)
	if e.Stage.Attempt > 0 {
		name = fmt.Sprintf("stage %d again %s", e.Stage.Stage, e.Name)
	}
	if e.CallSite != "" {
		name += " at " + filepath.Base(e.CallSite)
	}
	return name
}

// close removes the bars.
func (p *progress) close() {
	close(p.quit)
	<-p.done
}

func (p *progress) drawUntilClosed() {
	defer close(p.done)
	tick := time.NewTicker(barRefresh)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.draw(time.Now())
		case <-p.quit:
			p.mu.Lock()
			for _, s := range p.stages {
				s.over = true
			}
			p.mu.Unlock()
			p.preparing("")
			p.draw(time.Now())
			p.terminal.close()
			return
		}
	}
}

// draw brings the bars in line with the counts.
func (p *progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drawPreparation(now)
	for id, s := range p.stages {
		switch {
		case s.over:
			if s.bar != nil {
				s.bar.Abort(true)
			}
			delete(p.stages, id)
		case s.bar == nil && now.Sub(s.since) >= barDelay:
			s.bar = p.addBar(id, s)
		}
		if s.bar != nil {
			s.show()
			s.bar.SetCurrent(int64(s.ok))
		}
	}
}

// drawPreparation draws "building . 3s", which is a bar without a bar.
func (p *progress) drawPreparation(now time.Time) {
	switch w := p.preparation; {
	case w == nil:
	case w.over:
		if w.bar != nil {
			w.bar.Abort(true)
		}
		p.preparation = nil
	case w.bar == nil && now.Sub(w.since) >= barDelay:
		w.bar = p.terminal.addBar(1, mpb.NopStyle(),
			mpb.PrependDecorators(
				decor.Any(func(decor.Statistics) string { return *w.shown.Load() }),
				decor.Elapsed(decor.ET_STYLE_GO, decor.WC{C: decor.DextraSpace}),
			),
		)
	}
}

// addBar draws "stage 3 map at main.go:12 [====>    ] 12/40 +2 3s".
func (p *progress) addBar(id msg.StageAttempt, s *stageProgress) *mpb.Bar {
	s.show()
	style := mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding(" ").Rbound("]")
	return p.terminal.addBar(int64(s.tasks), style,
		mpb.BarPriority(int(id.Stage)),
		mpb.PrependDecorators(decor.Name(s.name)),
		mpb.AppendDecorators(
			decor.Any(func(decor.Statistics) string { return *s.shown.Load() }),
			decor.Elapsed(decor.ET_STYLE_GO, decor.WC{C: decor.DextraSpace}),
		),
	)
}

func (s *stageProgress) show() {
	text := s.counts()
	s.shown.Store(&text)
}

// counts says how far the stage is: tasks done of all, and running ones.
func (s *stageProgress) counts() string {
	text := fmt.Sprintf("%d/%d", s.ok, s.tasks)
	if running := s.started - s.ended; running > 0 {
		text += fmt.Sprintf(" +%d", running)
	}
	if s.failed > 0 {
		text += fmt.Sprintf(", %d failed", s.failed)
	}
	return text
}
