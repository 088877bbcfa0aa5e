// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"golang.org/x/tools/txtar"
)

// Transcript is a record of a conversation, turn by turn, in a form that is the same for
// every run of the same conversation; see the package comment. [Record] creates one,
// [Transcript.Replay] replays it, and [Diff] compares two.
type Transcript struct {
	// Comment is the text at the start of the file. It is not compared. No line of it may
	// look like the header of a section.
	Comment string

	tools []toolForm
	turns []turn
}

// toolForm is a tool that was offered.
type toolForm struct {
	Name        string `json:"name"` // name for the model
	Ensemble    string `json:"ensemble"`
	Tool        string `json:"tool"`
	ReadOnly    bool   `json:"read_only,omitzero"`
	Idempotent  bool   `json:"idempotent,omitzero"`
	Destructive *bool  `json:"destructive,omitempty"`
	OpenWorld   *bool  `json:"open_world,omitempty"`
	Exclusive   bool   `json:"exclusive,omitzero"`
}

// turn is one turn of a conversation.
type turn struct {
	given  []canister.Canister // canisters added from outside before the turn
	events []string            // lines; see the package comment
	added  []canister.Canister // canisters added to the history during the turn
}

// Lines for actions of the caller, and for the error that the caller received.
const (
	leaves  = "! the caller leaves"
	cancels = "! the caller cancels"
	failed  = "! error: "
)

// Format returns the transcript as a txtar archive.
func (t *Transcript) Format() []byte {
	archive := &txtar.Archive{Files: t.sections()}
	if t.Comment != "" {
		archive.Comment = []byte(strings.TrimRight(t.Comment, "\n") + "\n\n")
	}
	return txtar.Format(archive)
}

// sections returns the files of the archive.
func (t *Transcript) sections() []txtar.File {
	var files []txtar.File
	add := func(name string, lines []string) {
		if len(lines) > 0 {
			files = append(files, txtar.File{Name: name, Data: []byte(strings.Join(lines, "\n") + "\n")})
		}
	}
	var tools []string
	for _, tool := range t.tools {
		line, _ := json.Marshal(tool) // strings and booleans: cannot fail
		tools = append(tools, string(line))
	}
	add("tools", tools)
	for i, turn := range t.turns {
		add(fmt.Sprintf("turn %d/given", i+1), canisterLines(turn.given))
		// Written even without events, so that the turn is not lost.
		files = append(files, txtar.File{Name: fmt.Sprintf("turn %d/events", i+1)})
		if len(turn.events) > 0 {
			files[len(files)-1].Data = []byte(strings.Join(turn.events, "\n") + "\n")
		}
		add(fmt.Sprintf("turn %d/canisters", i+1), canisterLines(turn.added))
	}
	return files
}

// canisterLines returns the JSON forms of canisters that are known to have one.
func canisterLines(canisters []canister.Canister) []string {
	var lines []string
	for _, c := range canisters {
		line, err := canister.Marshal(c)
		if err != nil {
			line = []byte("! " + err.Error())
		}
		lines = append(lines, string(line))
	}
	return lines
}

// ParseTranscript reads the output of [Transcript.Format]. It ignores blank lines. Errors
// name the section and the line.
func ParseTranscript(data []byte) (*Transcript, error) {
	// A final newline, so that the last line is parsed like the others.
	archive := txtar.Parse(append(bytes.TrimSuffix(bytes.Clone(data), []byte("\n")), '\n'))
	t := &Transcript{Comment: strings.Trim(string(archive.Comment), "\n")}
	for _, file := range archive.Files {
		for i, line := range strings.Split(string(file.Data), "\n") {
			if err := t.parse(file.Name, strings.TrimSpace(line)); err != nil {
				return nil, fmt.Errorf("conversetest: section %q, line %d: %w", file.Name, i+1, err)
			}
		}
	}
	return t, nil
}

// parse adds one line of a section, which may be empty.
func (t *Transcript) parse(section, line string) error {
	if section == "tools" {
		var tool toolForm
		if line == "" {
			return nil
		}
		err := json.Unmarshal([]byte(line), &tool)
		t.tools = append(t.tools, tool)
		return err
	}
	var number int
	var part string
	if _, err := fmt.Sscanf(section, "turn %d/%s", &number, &part); err != nil || section != fmt.Sprintf("turn %d/%s", number, part) {
		return fmt.Errorf("no section has this name: want tools, turn 1/given, turn 1/events or turn 1/canisters")
	}
	if number == len(t.turns)+1 {
		t.turns = append(t.turns, turn{})
	}
	if number != len(t.turns) || number == 0 {
		return fmt.Errorf("turn %d follows turn %d", number, len(t.turns))
	}
	if line == "" {
		return nil
	}
	return t.turns[number-1].parse(part, line)
}

func (t *turn) parse(part, line string) error {
	if part == "events" {
		if !strings.HasPrefix(line, "! ") {
			if _, err := readEvent(line); err != nil {
				return err
			}
		}
		t.events = append(t.events, line)
		return nil
	}
	c, err := canister.Unmarshal([]byte(line))
	if err != nil {
		return err
	}
	switch part {
	case "given":
		t.given = append(t.given, c)
	case "canisters":
		t.added = append(t.added, c)
	default:
		return fmt.Errorf("a turn has no part %q: want given, events or canisters", part)
	}
	return nil
}

// Diff describes the first difference between two transcripts, or returns "" if there is
// none.
func Diff(want, got *Transcript) string {
	wanted, found := want.sections(), got.sections()
	for i := range max(len(wanted), len(found)) {
		switch {
		case i >= len(wanted):
			return fmt.Sprintf("there is an unexpected section %q", found[i].Name)
		case i >= len(found):
			return fmt.Sprintf("there is no section %q", wanted[i].Name)
		case wanted[i].Name != found[i].Name:
			return fmt.Sprintf("there is a section %q instead of %q", found[i].Name, wanted[i].Name)
		}
		if line, a, b := firstDifference(wanted[i].Data, found[i].Data); line > 0 {
			return fmt.Sprintf("section %q, line %d:\nwant %s\n got %s", wanted[i].Name, line, a, b)
		}
	}
	return ""
}

// firstDifference returns the number of the first line that differs, or 0, and both
// versions of the line.
func firstDifference(want, got []byte) (line int, a, b string) {
	if bytes.Equal(want, got) {
		return 0, "", ""
	}
	wanted, found := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	at := func(lines []string, i int) string {
		if i >= len(lines)-1 { // the element after the last newline is empty
			return "(nothing)"
		}
		return lines[i]
	}
	for at(wanted, line) == at(found, line) && line < max(len(wanted), len(found)) {
		line++
	}
	return line + 1, at(wanted, line), at(found, line)
}

// CompareFile fails the test unless the file at path contains the transcript got. If
// update is true, it writes the file instead and keeps the comment of an existing file.
// Tests usually take update from a flag:
//
//	var update = flag.Bool("update", false, "rewrite the transcripts")
func CompareFile(t testing.TB, path string, got *Transcript, update bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !update {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	want, err := ParseTranscript(data)
	if update {
		kept := *got
		if kept.Comment == "" && err == nil {
			kept.Comment = want.Comment
		}
		if err := os.WriteFile(path, kept.Format(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if difference := Diff(want, got); difference != "" {
		t.Errorf("%s (run the test with -update if the change is intended): %s", path, difference)
	}
}
