package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quern-project/quern/engine/conf"
	"github.com/quern-project/quern/engine/hostcall"
	"github.com/quern-project/quern/internal/units"
	"github.com/quern-project/quern/wasmhost/module"
	"github.com/quern-project/quern/wasmhost/sandbox"
)

func inspectCommand() command {
	return command{
		name:  "inspect",
		args:  "[--json] JOB",
		short: "say what is in a module, and whether it is a job",
		long: `Say what a WebAssembly module imports and exports, how large it is, what memory
it asks for, and whether it is a Quern job or why not. JOB is a file, or a
folder with a Go main package, which is built first. The exit code is 0 for a
job and 2 for anything else.`,
		files: true,
		setup: func(flags *pflag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print JSON")
			return func(ctx context.Context, c *console, args []string) error {
				if len(args) != 1 {
					return usagef("wants one job, has %d arguments", len(args))
				}
				return inspect(ctx, c, args[0], *asJSON)
			}
		},
	}
}

func inspect(ctx context.Context, c *console, job string, asJSON bool) error {
	log := newLog(c.err, false)
	configuration, err := withUsableCache(conf.New(), log)
	if err != nil {
		return err
	}
	wasm, err := loadJob(ctx, job, conf.CacheDir.Get(configuration), c.err, log)
	if err != nil {
		return err
	}
	host, err := sandbox.New(ctx, sandbox.Options{Functions: hostcall.Functions()})
	if err != nil {
		return err
	}
	defer host.Close(ctx)
	info, problems, err := host.Inspect(wasm)
	if err != nil {
		return notAJob(fmt.Errorf("%s: %w", job, err))
	}
	report := newInspection(job, info, problems)
	if asJSON {
		encoder := json.NewEncoder(c.out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		_, err = io.WriteString(c.out, report.String())
	}
	if err != nil {
		return err
	}
	if !report.Job {
		return &exitError{code: exitUsage} // the report has said why
	}
	return nil
}

// inspection is what 'quern inspect' says. Sizes are in bytes.
type inspection struct {
	File      string             `json:"file"`
	Job       bool               `json:"job"`
	Problems  []string           `json:"problems,omitempty"` // why it is no job
	Name      string             `json:"name,omitempty"`
	Producers []string           `json:"producers,omitempty"`
	Size      inspectionSizes    `json:"size"`
	Count     inspectionCounts   `json:"count"`
	Memories  []inspectionMemory `json:"memories"`
	Start     bool               `json:"start"`
	Imports   []inspectionExtern `json:"imports"`
	Exports   []inspectionExtern `json:"exports"`
}

type inspectionSizes struct {
	Total  int `json:"total"`
	Code   int `json:"code"`
	Data   int `json:"data"`
	Custom int `json:"custom"`
}

type inspectionCounts struct {
	Types          int `json:"types"`
	Functions      int `json:"functions"`
	Tables         int `json:"tables"`
	Globals        int `json:"globals"`
	MutableGlobals int `json:"mutable_globals"`
}

type inspectionMemory struct {
	Min      uint64 `json:"min"`
	Max      uint64 `json:"max,omitempty"` // 0 without a maximum
	Imported bool   `json:"imported,omitempty"`
}

type inspectionExtern struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Type string `json:"type,omitempty"`
}

// pageSize is that of a linear memory, in bytes.
const pageSize = 64 << 10

func newInspection(file string, info *module.Info, problems []string) *inspection {
	in := &inspection{
		File:      file,
		Job:       len(problems) == 0,
		Problems:  problems,
		Name:      info.Name,
		Producers: info.Producers,
		Size:      inspectionSizes{info.Size, info.CodeBytes, info.DataBytes, info.CustomBytes},
		Count:     inspectionCounts{info.Types, info.Functions, info.Tables, info.Globals, info.MutableGlobals},
		Memories:  []inspectionMemory{},
		Start:     info.HasStart,
		Imports:   []inspectionExtern{},
		Exports:   []inspectionExtern{},
	}
	for _, m := range info.Memories {
		memory := inspectionMemory{Min: m.Min * pageSize, Imported: m.Imported}
		if m.HasMax {
			memory.Max = m.Max * pageSize
		}
		in.Memories = append(in.Memories, memory)
	}
	for _, i := range info.Imports {
		// Go's linker imports a function once for each package that declares it.
		if x := extern(i.Import.String(), i.Kind, i.Type); !slices.Contains(in.Imports, x) {
			in.Imports = append(in.Imports, x)
		}
	}
	for _, e := range info.Exports {
		in.Exports = append(in.Exports, extern(e.Name, e.Kind, e.Type))
	}
	return in
}

func extern(name string, kind module.Kind, signature module.Signature) inspectionExtern {
	x := inspectionExtern{Name: name, Kind: kind.String()}
	if kind == module.KindFunction {
		x.Type = signature.String()
	}
	return x
}

func (in *inspection) String() string {
	var b strings.Builder
	if in.Job {
		fmt.Fprintf(&b, "%s: a Quern job\n\n", in.File)
	} else {
		fmt.Fprintf(&b, "%s: not a Quern job\n", in.File)
		for _, p := range in.Problems {
			fmt.Fprintf(&b, "  %s\n", p)
		}
		b.WriteByte('\n')
	}
	if in.Name != "" {
		fmt.Fprintf(&b, "name       %q\n", in.Name)
	}
	for _, p := range in.Producers {
		fmt.Fprintf(&b, "producer   %q\n", p)
	}
	fmt.Fprintf(&b, "size       %s: code %s, data %s, names and other custom sections %s\n",
		size(in.Size.Total), size(in.Size.Code), size(in.Size.Data), size(in.Size.Custom))
	for _, m := range in.Memories {
		most := "without a maximum"
		if m.Max > 0 {
			most = "at most " + units.Bytes(m.Max)
		}
		fmt.Fprintf(&b, "memory     %s at first, %s\n", units.Bytes(m.Min), most)
	}
	fmt.Fprintf(&b, "functions  %d of %d types\n", in.Count.Functions, in.Count.Types)
	fmt.Fprintf(&b, "globals    %d, of which %d mutable\n", in.Count.Globals, in.Count.MutableGlobals)
	externs(&b, "imports", in.Imports)
	externs(&b, "exports", in.Exports)
	return b.String()
}

func externs(b *strings.Builder, title string, list []inspectionExtern) {
	fmt.Fprintf(b, "\n%s (%d)\n", title, len(list))
	for _, x := range list {
		// Names are the module's: whatever they have in them stays on its line.
		name := x.Name
		if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			name = fmt.Sprintf("%q", name)
		}
		if x.Type == "" {
			fmt.Fprintf(b, "  %s: %s\n", name, x.Kind)
		} else {
			fmt.Fprintf(b, "  %s %s\n", name, x.Type)
		}
	}
}

func size(n int) string { return units.Bytes(n) }
