// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// events reads all events of a stream.
func events(in io.Reader, limit int) (all []string, err error) {
	reader := NewReader(in, limit)
	if _, err := reader.Peek(); err != nil && err != io.EOF {
		return nil, err
	}
	for {
		e, err := reader.Next()
		if err != nil {
			return all, err
		}
		if len(e.Data) > 0 {
			all = append(all, e.Name+"|"+string(e.Data))
		}
	}
}

// plainEvents reads a stream in the slow and plain way of the standard.
func plainEvents(text string) (all []string) {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	name, data := "", []string(nil)
	for line := range strings.SplitSeq(text+"\n\n", "\n") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if strings.Join(data, "\n") != "" {
				all = append(all, name+"|"+strings.Join(data, "\n"))
			}
			name, data = "", nil
		case field == "data":
			data = append(data, value)
		case field == "event":
			name = value
		}
	}
	return all
}

// FuzzEvents: however a stream is cut into reads, its events are those of the
// standard.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"data: {}\n\n", "data:a\r\ndata: b\r\n\r\nevent: x\rdata\r\r: c\n\ndata: end", "\ufeffdata: a\n\n", "\n\n\nevent: e\n\ndata: x\n\n", "data: a\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := fmt.Sprint(plainEvents(string(text)))
		for _, in := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text)), iotest.DataErrReader(bytes.NewReader(text))} {
			got, err := events(in, 1<<20)
			if err != io.EOF || fmt.Sprint(got) != want {
				t.Fatalf("%q gives %q, %v, want %q", text, got, err, want)
			}
		}
		if got, err := events(bytes.NewReader(text), 8); err != io.EOF && !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func TestFields(t *testing.T) {
	reader := NewReader(strings.NewReader("\ufeff: a comment\nid: 1\rretry: 250\r\rid: a\x00b\r\nretry: 1s\r\ndata\r\n\r\nevent: x\n\nevent: y\nid:2\n"+
		"data:  {}\ndata: {}\n\ndata: end"), 1<<10)
	want := []Event{
		{ID: "1", Retry: 250 * time.Millisecond},
		{},
		{Name: "y", ID: "2", Data: []byte(" {}\n{}")},
		{Data: []byte("end"), IsPartial: true},
	}
	for _, w := range want {
		got, err := reader.Next()
		if err != nil || got.Name != w.Name || got.ID != w.ID || got.Retry != w.Retry || got.IsPartial != w.IsPartial || !bytes.Equal(got.Data, w.Data) {
			t.Errorf("Next() = %+v, %v, want %+v", got, err, w)
		}
	}
	if got, err := reader.Next(); err != io.EOF {
		t.Errorf("Next() = %+v, %v, want io.EOF", got, err)
	}
}

// An error other than the end of the stream leaves whole lines only.
func TestBrokenStream(t *testing.T) {
	broken := errors.New("the connection was reset")
	for _, test := range []struct{ text, want string }{
		{"data: a\ndata: b", "a"},
		{"data: a\ndata: b\n", "a\nb"},
	} {
		reader := NewReader(io.MultiReader(strings.NewReader(test.text), iotest.ErrReader(broken)), 1<<10)
		if e, err := reader.Next(); err != nil || string(e.Data) != test.want || !e.IsPartial {
			t.Errorf("%q gives %q, %v, want %q", test.text, e.Data, err, test.want)
		}
		if _, err := reader.Next(); err != broken {
			t.Errorf("%q ends with %v, want %v", test.text, err, broken)
		}
	}
}

func TestBytes(t *testing.T) {
	e := Event{Name: "message", ID: "7", Data: []byte("{\n}"), Retry: time.Second}
	if got, want := string(e.Bytes()), "event: message\nid: 7\nretry: 1000\ndata: { }\n\n"; got != want {
		t.Errorf("Bytes() = %q, want %q", got, want)
	}
	if got := (&Event{}).Bytes(); got != nil {
		t.Errorf("Bytes() = %q, want nil", got)
	}
}

// The half of an ID would make the server go on at another place of the stream.
func TestCutFields(t *testing.T) {
	for _, text := range []string{"data: a\nid: 12", "data: a\nretry: 10", "id: 1\ndata: a\nid: 12", "id: 1\ndata: a\nretry: 10"} {
		e, err := NewReader(strings.NewReader(text), 1<<10).Next()
		if err != nil || string(e.Data) != "a" || e.ID == "12" || e.Retry != 0 || !e.IsPartial {
			t.Errorf("%q gives %+v, %v", text, e, err)
		}
	}
}

// A stream that stays open for hours keeps no memory of a large event.
func TestLargeEventsLeaveNothing(t *testing.T) {
	large := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
	in, out := io.Pipe()
	defer in.Close()
	go func() {
		for range 3 {
			_, _ = io.WriteString(out, large)
			_, _ = io.WriteString(out, "data: small\n\n")
		}
		_ = out.Close()
	}()
	reader := NewReader(in, 2<<20)
	for i := range 6 {
		want := []int{1 << 20, len("small")}[i%2]
		if e, err := reader.Next(); err != nil || len(e.Data) != want {
			t.Fatalf("event %d has %d bytes, %v, want %d", i, len(e.Data), err, want)
		}
		if i%2 == 1 && cap(reader.buf)+cap(reader.data) > 128<<10 {
			t.Errorf("after event %d the reader keeps %d bytes", i, cap(reader.buf)+cap(reader.data))
		}
	}
}
