// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/writefile"
)

// The bounds of the line history: of the messages that a process remembers, of one
// message in the file, and of the file, all but the first in bytes. A file that has
// become larger is cut to half of that.
const (
	maxRemembered  = 1000
	maxLineBytes   = 64 << 10
	maxHistoryFile = 1 << 20
)

// lineHistory holds the messages that the person has sent, oldest first. A file has the
// messages of all processes of the user; each process appends its own.
type lineHistory struct {
	path  string // empty keeps no file
	lines []string

	at    int    // the line that is shown; len(lines) is the draft
	draft string // the input before the first step back
}

// loadHistory reads the history from a file, which need not exist. After an error the
// history works without a file.
func loadHistory(path string) (*lineHistory, error) {
	h := &lineHistory{path: path}
	if path == "" {
		return h, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		h.path = ""
		return h, err
	}
	for line := range bytes.Lines(text) {
		var said string
		if json.Unmarshal(line, &said) == nil { // a line that another process is writing is cut
			h.remember(said)
		}
	}
	return h, nil
}

// remember adds a line that was sent to those in memory.
func (h *lineHistory) remember(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	if n := len(h.lines); n == 0 || h.lines[n-1] != line {
		h.lines = append(h.lines, line)
	}
	h.lines = h.lines[max(0, len(h.lines)-maxRemembered):]
	h.at = len(h.lines)
}

// store appends a line to the file of a history. It may wait for other processes.
func store(path, line string) error {
	text, err := json.Marshal(line)
	if err != nil || len(text) > maxLineBytes {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := writefile.Lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	private := file.Chmod(0o600) // the file may be older
	_, err = file.Write(append(text, '\n'))
	info, failed := file.Stat()
	if err = errors.Join(private, err, failed, file.Close()); err != nil || info.Size() <= maxHistoryFile {
		return err
	}
	return shorten(path)
}

// shorten drops the older lines of a file, which the caller has locked.
func shorten(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text = text[max(0, len(text)-maxHistoryFile/2):]
	text = text[bytes.IndexByte(text, '\n')+1:]
	_, err = writefile.Replace(path, &writefile.Options{Temporary: filepath.Base(path) + ".*.tmp"},
		func(file *os.File) error { _, err := file.Write(text); return err })
	return err
}

// back returns the line before the one that is shown, which is current.
func (h *lineHistory) back(current string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.lines) {
		h.draft = current
	}
	h.at--
	return h.lines[h.at], true
}

// forth returns the line after the one that is shown; the last one is the draft.
func (h *lineHistory) forth() (string, bool) {
	if h.at >= len(h.lines) {
		return "", false
	}
	h.at++
	if h.at == len(h.lines) {
		return h.draft, true
	}
	return h.lines[h.at], true
}

// rest makes the next step back begin at the newest line.
func (h *lineHistory) rest() { h.at, h.draft = len(h.lines), "" }

// search is a search through the history, from the newest line to older ones.
type search struct {
	text string
	at   int // the line that was found; len(lines) before the first
}

// find looks for the text at or before a line, and reports whether there is one.
func (h *lineHistory) find(s *search, from int) bool {
	if s.text == "" {
		return false
	}
	folded := strings.ToLower(s.text)
	for i, line := range slices.Backward(h.lines[:min(from+1, len(h.lines))]) {
		if strings.Contains(strings.ToLower(line), folded) {
			s.at = i
			return true
		}
	}
	return false
}
