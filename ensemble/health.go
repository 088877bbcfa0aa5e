// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Health is the state of the ensembles of a roster, in a form for programs: it marshals
// to JSON and back. Texts that may hold a secret have passed through Options.Redact.
type Health struct {
	Time time.Time `json:"time"` // when this state was current
	// Live means that the roster works; false once it was closed.
	Live bool `json:"live"`
	// Ready means live, with each Required ensemble ready or idle (an idle one connects
	// when it is used), and with at least one ensemble ready or idle, if there are any. A
	// lost one that is not Required counts as idle while only its next use would connect it.
	Ready bool `json:"ready"`
	// Reasons explain to people why it is not Ready; empty if it is.
	Reasons []string `json:"reasons,omitempty"`
	// Ensembles are the ensembles of the roster, in its order.
	Ensembles []EnsembleHealth `json:"ensembles"`
}

// EnsembleHealth is the state of one ensemble. The fields have the same meanings as in
// [Snapshot], which is for Go programs.
type EnsembleHealth struct {
	Name     string    `json:"name"`
	State    State     `json:"state"`
	Since    time.Time `json:"since"`
	Required bool      `json:"required"`
	// LastSuccess and LastError are absent when there was none.
	LastSuccess time.Time `json:"last_success,omitzero"`
	LastError   string    `json:"last_error,omitempty"`
	Latency     Latency   `json:"latency_ms"`
	InFlight    int       `json:"in_flight"`
	Calls       int       `json:"calls"`
	Failures    int       `json:"failures"`
	Restarts    int       `json:"restarts"`
	Repeats     int       `json:"repeats"`
	Late        int       `json:"late"`
	Tools       int       `json:"tools"`
	Aside       []Aside   `json:"aside"` // never null; without Aside.Ensemble
}

// Health returns the current state of the ensembles. It never connects to anything and
// never waits.
func (r *Roster) Health() Health {
	h := Health{Time: time.Now(), Live: !r.isClosed(), Ensembles: []EnsembleHealth{}}
	if !h.Live {
		h.Reasons = append(h.Reasons, "the roster is closed")
	}
	usable, ensembles := 0, r.now().ensembles
	for _, e := range ensembles {
		health := e.health()
		h.Ensembles = append(h.Ensembles, health)
		switch {
		case health.State == Ready || health.State == Idle || !health.Required && connectsOnUse(e):
			usable++
		case health.Required:
			h.Reasons = append(h.Reasons, fmt.Sprintf("ensemble %q is required and %s%s", e.name, health.State, nextSteps[health.State]))
		}
	}
	if usable == 0 && len(ensembles) > 0 && len(h.Reasons) == 0 {
		h.Reasons = append(h.Reasons, "no ensemble is ready")
	}
	h.Ready = len(h.Reasons) == 0
	return h
}

// nextSteps say when a required ensemble connects again.
var nextSteps = map[State]string{
	Lost:       "; it connects again by itself",
	NeedsLogin: "; it connects again after the login",
	Parked:     "; it stays so until it is revived",
}

// health returns the state of the ensemble.
func (e *Ensemble) health() EnsembleHealth {
	s, redact := e.Snapshot(), e.options.Redact
	h := EnsembleHealth{
		Name: s.Name, State: s.State, Since: s.Since, Required: e.options.Required,
		LastSuccess: s.LastSuccess, Latency: s.Latency, InFlight: s.InFlight, Calls: s.Calls, Failures: s.Failures,
		Restarts: s.Restarts, Repeats: s.Repeats, Late: s.Late, Tools: s.Tools, Aside: []Aside{},
	}
	if s.LastError != nil {
		h.LastError = redact(s.LastError.Error())
	}
	for _, a := range s.Aside {
		h.Aside = append(h.Aside, Aside{Tool: a.Tool, Reason: redact(a.Reason)})
	}
	return h
}

// HealthHandler returns a handler that answers GET requests about the roster with JSON
// and the status 200 or 503 (RFC 9110, section 15.6.4). It never connects to anything.
//
//   - /health/mcp: the [Health]; 503 if it is not Ready.
//   - /livez: {"live":true}, for a supervisor that restarts the program; 503 if not.
//   - /readyz: {"ready":true}, for a load balancer; 503 if not, with the reasons.
//
// The program may have its own reasons for not being ready, such as an imminent
// shutdown: each function in notReady returns a reason, or "". The functions must not
// block, and may be called concurrently.
//
// The responses contain names of servers and their errors, so do not expose them
// publicly.
func (r *Roster) HealthHandler(notReady ...func() string) http.Handler {
	// This is in package ensemble because zap links net/http already.
	mux := http.NewServeMux()
	answer := func(path string, judge func(Health) (ok bool, body any)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			h := r.Health()
			for _, reason := range notReady {
				if why := reason(); why != "" {
					h.Ready, h.Reasons = false, append(h.Reasons, why)
				}
			}
			ok, body := judge(h)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			if !ok {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_ = json.NewEncoder(w).Encode(body) // the client may have left
		})
	}
	answer("/health/mcp", func(h Health) (bool, any) { return h.Ready, h })
	answer("/livez", func(h Health) (bool, any) { return h.Live, map[string]bool{"live": h.Live} })
	answer("/readyz", func(h Health) (bool, any) {
		return h.Ready, struct {
			Ready   bool     `json:"ready"`
			Reasons []string `json:"reasons,omitempty"`
		}{h.Ready, h.Reasons}
	})
	return mux
}
