// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tableRounds is the variable with the number of rounds of TestTable.
const tableRounds = "CONSORT_BENCH_TABLE"

// tableProfiles is the variable with the folder for the CPU profiles of Consort's side, a file
// for each work; the last round's stay. If it is not set, none are made.
const tableProfiles = "CONSORT_BENCH_PROFILES"

// rows are the rows of the table: a figure of a work.
var rows = []struct{ title, work, unit string }{
	{"CPU of an exchange, whole, µs", "whole", "cpu"},
	{"CPU of an exchange, streamed, µs", "streamed", "cpu"},
	{"allocations of an exchange, whole", "whole", "allocs"},
	{"allocations of an exchange, streamed", "streamed", "allocs"},
	{"bytes allocated of an exchange, whole", "whole", "bytes"},
	{"bytes allocated of an exchange, streamed", "streamed", "bytes"},
	{"8 parallel calls, CPU, whole, µs", "parallel-whole", "cpu"},
	{"8 parallel calls, CPU, streamed, µs", "parallel-streamed", "cpu"},
	{"CPU of an exchange with 100 tools, µs", "tools", "cpu"},
	{"time of an exchange near the 490th, µs", "long", "time"},
	{"CPU of an exchange near the 490th, µs", "long", "cpu"},
	{"2,000 conversations at once, CPU of each, µs", "many", "cpu"},
	{"2,000 conversations at once, memory of each, B", "many", "memory"},
	{"10,000 conversations at once, memory of each, B", "most", "memory"},
	{"10,000 conversations at once, errors", "most", "errors"},
	{"first piece of text, µs", "first", "time"},
	{"start with 10 servers to first answer, µs", "start", "time"},
	{"CPU of a streamed chunk, µs", "chunk", "cpu"},
}

// TestTable prints the table of docs/performance.md: medians over the rounds, and for the
// ratios to the loop written by hand also the smallest and the largest of a round. In each
// round each side of each work has a process of its own, in random order.
func TestTable(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv(tableRounds))
	if rounds == 0 {
		t.Skip(tableRounds + " is the number of rounds; .ci/bench sets it")
	}
	only := os.Getenv("ONLY")
	measured := map[string][]figures{} // by work and side
	urls := map[string]string{}
	for range rounds {
		for _, i := range rand.Perm(len(works)) {
			w := &works[i]
			if only != "" && !strings.Contains(only, w.name) {
				continue
			}
			if urls[w.name] == "" {
				urls[w.name] = launchModel(t, w.script)
			}
			for _, s := range rand.Perm(len(sidesOf)) {
				key := w.name + " " + sidesOf[s]
				measured[key] = append(measured[key], measure(t, w.name, sidesOf[s], urls[w.name]))
			}
		}
	}
	fmt.Printf("%-50s %10s %10s %10s   %-22s %s\n", "", "floor", "hand", "consort", "floor/hand", "consort/hand")
	for _, row := range rows {
		if len(measured[row.work+" hand"]) > 0 {
			fmt.Println(tableRow(row.title, row.unit, func(side string) []figures { return measured[row.work+" "+side] }))
		}
	}
}

// tableRow is the text of a row.
func tableRow(title, unit string, of func(side string) []figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-50s", title)
	for _, side := range sidesOf {
		var values []float64
		for _, f := range of(side) {
			values = append(values, f[unit])
		}
		fmt.Fprintf(&b, " %10.4g", median(values))
	}
	if unit == "errors" {
		return b.String()
	}
	for _, side := range []string{"floor", "consort"} {
		var ratios []float64
		for i, f := range of(side) {
			ratios = append(ratios, f[unit]/of("hand")[i][unit])
		}
		fmt.Fprintf(&b, "   %.2f (%.2f to %.2f)    ", median(ratios), slices.Min(ratios), slices.Max(ratios))
	}
	return strings.TrimRight(b.String(), " ")
}

// measure starts a process that measures a side.
func measure(t *testing.T, work, side, url string) figures {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestWork$", "-test.v")
	if folder := os.Getenv(tableProfiles); folder != "" && side == "consort" {
		cmd.Args = append(cmd.Args, "-test.cpuprofile", filepath.Join(folder, work+".prof"))
	}
	cmd.Env = append(os.Environ(), workRow+"="+work, workSide+"="+side, workURL+"="+url)
	out, err := cmd.CombinedOutput()
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), figuresPrefix); ok && err == nil {
			var f figures
			if err := json.Unmarshal([]byte(text), &f); err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("%s, %s: %v\n%s", work, side, err, out)
	return nil
}
