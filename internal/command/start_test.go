// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// initialized matches the lines that GODEBUG=inittrace=1 prints; see package runtime.
var initialized = regexp.MustCompile(`(?m)^init (\S+) @.*, (\S+) ms clock`)

// Each start of the command takes as long as its packages need to be initialized. None of
// them takes more than twice the time of chroma's lexers, which is 7 of 26 ms.
func TestNoPackageDelaysTheStart(t *testing.T) {
	const lexers = "github.com/alecthomas/chroma/v2/lexers"
	shortest := map[string]float64{} // in milliseconds
	for range 10 {
		cmd := exec.Command(unraced, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, found := range initialized.FindAllStringSubmatch(string(out), -1) {
			took, err := strconv.ParseFloat(found[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			if before, ok := shortest[found[1]]; !ok || took < before {
				shortest[found[1]] = took
			}
		}
	}
	if shortest[lexers] == 0 {
		t.Fatalf("%s is missing: %v", lexers, shortest)
	}
	for name, took := range shortest {
		if took > 2*shortest[lexers] {
			t.Errorf("%s is initialized in %v ms, %s in %v ms", name, took, lexers, shortest[lexers])
		}
	}
}
