// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Recorded is a request as it was received.
type Recorded struct {
	Method string
	Path   string
	// Header holds all headers, including Authorization.
	Header http.Header
	Body   []byte
	Time   time.Time
}

// maxRecordedBytes bounds the recorded bodies in total, maxFaults the number of faults.
const (
	maxRecordedBytes = 64 << 20
	maxFaults        = 100
)

// journal keeps the latest requests and the first faults.
type journal struct {
	limit int // of requests; none if negative

	mu       sync.Mutex
	requests []Recorded
	bytes    int
	faults   []string
}

func (j *journal) record(r *http.Request, body []byte) {
	if j.limit < 0 {
		return
	}
	entry := Recorded{
		Method: r.Method,
		Path:   r.URL.Path,
		Header: r.Header.Clone(),
		Body:   bytes.Clone(body),
		Time:   time.Now(),
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = append(j.requests, entry)
	j.bytes += len(body)
	for len(j.requests) > 1 && (len(j.requests) > j.limit || j.bytes > maxRecordedBytes) {
		j.bytes -= len(j.requests[0].Body)
		j.requests[0] = Recorded{} // releases the body
		j.requests = j.requests[1:]
	}
}

func (j *journal) fault(message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.faults) < maxFaults {
		j.faults = append(j.faults, message)
	}
}

// Requests returns the latest requests in order of arrival; see [Options.Record].
func (s *Server) Requests() []Recorded {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return slices.Clone(s.journal.requests)
}

// Faults returns the first hundred faults: reasons why requests did not follow the script
// or would have been refused by OpenAI.
func (s *Server) Faults() []string {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return slices.Clone(s.journal.faults)
}
