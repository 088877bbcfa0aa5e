// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/converse/httpapi/internal/references"
)

// resolve replaces references by the items of stored responses that they name. Some clients send them in
// the place of all earlier messages of the model.
func (o openAI) resolve(ctx context.Context, items []inputMessage) error {
	known := references.Items{Times: map[string]int{}, Forms: map[string][]byte{}, Limit: o.h.MaxBody}
	for _, item := range items {
		if item.isReference() {
			known.Times[item.ID]++
		}
	}
	for i := range items {
		if !items[i].isReference() {
			continue
		}
		at, id := fmt.Sprintf("input[%d].id", i), items[i].ID
		if known.Forms[id] == nil {
			a, _, err := o.stored(ctx, responseOfItem(id), at)
			if err != nil {
				return err
			}
			if err := known.Add(a.items); err != nil {
				return err
			}
		}
		items[i] = inputMessage{}
		if form := known.Forms[id]; form == nil || json.Unmarshal(form, &items[i]) != nil {
			return noResponse(at)
		}
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
