// SPDX-License-Identifier: Apache-2.0

//go:build unix

package faultserver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

func TestScriptKeepsEverythingInJSON(t *testing.T) {
	script := Script{
		Dir: "d", Life: 90 * time.Second,
		Rules: []Rule{
			{Fault: "die", At: "before-effect", Tool: "effect", Nth: 2, Times: Always, Status: 3, Text: "t", Delay: 1500 * time.Millisecond, Count: 4, Size: 5},
			{Fault: "slow", At: "start"},
		},
	}
	for i := range reflect.TypeFor[Rule]().NumField() {
		if reflect.ValueOf(script.Rules[0]).Field(i).IsZero() {
			t.Fatalf("the test leaves out %s", reflect.TypeFor[Rule]().Field(i).Name)
		}
	}
	data, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"delay":"1.5s"`) || !strings.Contains(string(data), `"life":"1m30s"`) {
		t.Errorf("durations are not in words: %s", data)
	}
	got, err := ParseScript(data)
	if err != nil || !reflect.DeepEqual(got, script) {
		t.Errorf("got %+v, %v; want %+v", got, err, script)
	}
}

func TestParseScriptSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "the script",
		`{"rules":[{"fault":"die","at":"start","colour":1}]}`:           "colour",
		`{"rules":[{"fault":"dye","at":"start"}]}`:                      `rule 1: unknown fault "dye"; did you mean "die"?`,
		`{"rules":[{"fault":"die","at":"noon"}]}`:                       `cannot occur at "noon"`,
		`{"rules":[{"fault":"html","at":"start"}]}`:                     "over HTTP only at [initialize",
		`{"rules":[{"fault":"die","at":"list","tool":"echo"}]}`:         "no tool is called",
		`{"rules":[{"fault":"die","at":"list","times":-2}]}`:            "negative",
		`{"rules":[{"fault":"slow","at":"list","delay":"soon"}]}`:       "duration",
		`{"rules":[{"fault":"die","at":"list"},{"fault":"","at":"x"}]}`: "rule 2",
	} {
		if _, err := ParseScript([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestScriptForTheOtherTransport(t *testing.T) {
	var stderr strings.Builder
	t.Setenv(Variable, "")
	onlyHTTP := `{"rules":[{"fault":"html","at":"list"}]}`
	if got := Main([]string{"-json", onlyHTTP}, strings.NewReader(""), new(strings.Builder), &stderr); got != 2 || !strings.Contains(stderr.String(), "html") {
		t.Errorf("status %d, stderr %q", got, &stderr)
	}
	if _, err := StartHTTP(Script{Rules: []Rule{{Fault: "leave-child", At: "start"}}}, nil); err == nil {
		t.Error("a fault of stdio was taken over HTTP")
	}
}

func TestMainTakesAScriptFromEachPlace(t *testing.T) {
	const text = `{"rules":[{"fault":"die","at":"start","status":5}]}`
	file := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) int {
		return Main(args, strings.NewReader(""), new(strings.Builder), new(strings.Builder))
	}
	if got := run("-json", text); got != 5 {
		t.Errorf("-json: status %d", got)
	}
	if got := run("-script", file); got != 5 {
		t.Errorf("-script: status %d", got)
	}
	if got := run("-script", file+"x"); got != 2 {
		t.Errorf("no file: status %d", got)
	}
	if got := run("-no-such-flag"); got != 2 {
		t.Errorf("wrong flag: status %d", got)
	}
	if got := run(); got != 0 {
		t.Errorf("no script: status %d", got)
	}
	t.Setenv(Variable, text)
	if got := run(); got != 5 {
		t.Errorf("%s: status %d", Variable, got)
	}
	if got := run("-json", `{"dir":"/no/such/directory"}`); got != 1 {
		t.Errorf("no directory: status %d", got)
	}
}

// FuzzMain: no input makes the server panic or hang, and its output consists of messages.
func FuzzMain(f *testing.F) {
	for _, seed := range []string{
		initialize + "\n" + initialized + "\n" + listTools + "\n" + callEffect + "\n" + cancelCall,
		"{}\n[]\n1\nnull\n{\"id\":{}}\n\xff\n\n",
		`{"id":1,"method":"tools/call","params":{"name":"progress","arguments":{"steps":2},"_meta":{"progressToken":{}}}}`,
		`{"id":"x","method":"tools/list","params":{"cursor":"endless-9"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var out lockedBuffer
		if got := Main([]string{"-json", "{}"}, strings.NewReader(string(input)), &out, &out); got != 0 {
			t.Errorf("status %d: %s", got, &out)
		}
		whole, _, _ := strings.Cut(out.String()+"\n", "\n")
		if len(whole) < 4096 && whole != "" && !json.Valid([]byte(whole)) {
			t.Errorf("it wrote %q", whole)
		}
	})
}
