// SPDX-License-Identifier: Apache-2.0

// Package references holds the items of stored responses that stand in a request by their IDs.
package references

import (
	"net/http"

	"github.com/consort-go/consort/internal/jsontext"
)

// Items are the items of stored responses that a request names.
type Items struct {
	Times map[string]int    // how often the request names an item, by its ID
	Forms map[string][]byte // in JSON, by their IDs
	Limit int64             // of the size of all references, in bytes

	size int64
}

// Add encodes the items of a response that the request names, each once. The error is a [*http.MaxBytesError] if they are
// larger than the limit.
func (r *Items) Add(items []map[string]any) error {
	for _, item := range items {
		id := item["id"].(string)
		if r.Times[id] == 0 || r.Forms[id] != nil {
			continue
		}
		form, err := jsontext.Encode(item)
		if err != nil {
			return err
		}
		if r.size += int64(len(form)) * int64(r.Times[id]); r.size > r.Limit {
			return &http.MaxBytesError{Limit: r.Limit}
		}
		r.Forms[id] = form
	}
	return nil
}
