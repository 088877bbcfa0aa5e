// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/consort-go/consort/internal/jsontext"
)

// form is the JSON form of a [Record], with its members in order. Empty members
// are left out, except time, tool and code.
type form struct {
	Time         time.Time                  `json:"time"`
	Asker        string                     `json:"asker,omitzero"`
	Client       string                     `json:"client,omitzero"`
	ClientName   string                     `json:"client_name,omitzero"`
	Conversation string                     `json:"conversation,omitzero"`
	Invocation   string                     `json:"invocation,omitzero"`
	Parent       string                     `json:"parent,omitzero"`
	Ensemble     string                     `json:"ensemble,omitzero"`
	Tool         string                     `json:"tool"`
	Identity     map[string]json.RawMessage `json:"identity,omitempty"`
	Forged       []string                   `json:"forged,omitempty"`
	Arguments    json.RawMessage            `json:"arguments,omitempty"`
	Approved     json.RawMessage            `json:"approved,omitempty"`
	By           string                     `json:"by,omitzero"`
	Code         string                     `json:"code"`
	Error        string                     `json:"error,omitzero"`
	Duration     float64                    `json:"duration_ms,omitzero"`
	Bytes        int                        `json:"bytes,omitzero"`
}

// MarshalJSON returns the JSON form described in docs/audit.md, on one line. It
// returns an error if Arguments or a value of Identity is not valid JSON.
func (r Record) MarshalJSON() ([]byte, error) {
	line, err := jsontext.Encode(form{
		Time: r.Time.UTC(), Asker: r.Asker, Client: r.Client, ClientName: r.ClientName, Conversation: r.Conversation, Invocation: r.Invocation, Parent: r.Parent,
		Ensemble: r.Ensemble, Tool: r.Tool, Identity: r.Identity, Forged: r.Forged, Arguments: r.Arguments, Approved: r.Approved, By: r.By,
		Code: r.Code, Error: r.Error, Duration: jsontext.Milliseconds(r.Duration), Bytes: r.Bytes,
	})
	if err != nil {
		return nil, fmt.Errorf("audit: the record has no JSON form: %w", err)
	}
	return line, nil
}

// UnmarshalJSON parses the JSON form. It ignores unknown members, which later
// versions may add.
func (r *Record) UnmarshalJSON(text []byte) error {
	var f form
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	*r = Record{
		Time: f.Time, Asker: f.Asker, Client: f.Client, ClientName: f.ClientName, Conversation: f.Conversation, Invocation: f.Invocation, Parent: f.Parent,
		Ensemble: f.Ensemble, Tool: f.Tool, Identity: f.Identity, Forged: f.Forged, Arguments: f.Arguments, Approved: f.Approved, By: f.By,
		Code: f.Code, Error: f.Error, Duration: time.Duration(math.Round(f.Duration*1000)) * time.Microsecond, Bytes: f.Bytes,
	}
	return nil
}
