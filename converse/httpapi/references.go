// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/consort-go/consort/internal/jsontext"
)

// resolve replaces references by the items of stored responses that they name. Some clients send them in
// the place of all earlier messages of the model.
func (o openAI) resolve(ctx context.Context, items []inputMessage) error {
	known := references{times: map[string]int{}, forms: map[string][]byte{}, limit: o.h.MaxBody}
	for _, item := range items {
		if item.isReference() {
			known.times[item.ID]++
		}
	}
	for i := range items {
		if !items[i].isReference() {
			continue
		}
		at, id := fmt.Sprintf("input[%d].id", i), items[i].ID
		if known.forms[id] == nil {
			a, _, err := o.stored(ctx, responseOfItem(id), at)
			if err != nil {
				return err
			}
			if err := known.add(a.items); err != nil {
				return err
			}
		}
		items[i] = inputMessage{}
		if form := known.forms[id]; form == nil || json.Unmarshal(form, &items[i]) != nil {
			return noResponse(at)
		}
	}
	return nil
}

// references are the items of stored responses that a request names.
type references struct {
	times map[string]int    // how often the request names an item, by its ID
	forms map[string][]byte // in JSON, by their IDs
	size  int64             // of all references, in bytes
	limit int64
}

// add encodes the items of a response that the request names, each once.
func (r *references) add(items []map[string]any) error {
	for _, item := range items {
		id := item["id"].(string)
		if r.times[id] == 0 || r.forms[id] != nil {
			continue
		}
		form, err := jsontext.Encode(item)
		if err != nil {
			return err
		}
		if r.size += int64(len(form)) * int64(r.times[id]); r.size > r.limit {
			return &http.MaxBytesError{Limit: r.limit}
		}
		r.forms[id] = form
	}
	return nil
}

// isReference reports whether an item stands for one of a stored response. The request for an approval
// belongs to its conversation and stays.
func (m inputMessage) isReference() bool {
	return m.Type == referenceType && !strings.HasPrefix(m.ID, "mcpr_")
}

// referenceType is the type of an item that stands for another one.
const referenceType = "item_reference"

// responseOfItem returns the ID of the response that has an item.
func responseOfItem(id string) string {
	_, rest, _ := strings.Cut(id, "_")
	return "resp_" + rest[:max(0, strings.LastIndexByte(rest, '_'))]
}
