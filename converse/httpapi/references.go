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
	known, size := map[string][]byte{}, int64(0)
	for i := range items {
		if items[i].Type != referenceType || strings.HasPrefix(items[i].ID, "mcpr_") {
			continue
		}
		at := fmt.Sprintf("input[%d].id", i)
		if known[items[i].ID] == nil {
			a, _, err := o.stored(ctx, responseOfItem(items[i].ID), at)
			if err != nil {
				return err
			}
			for _, item := range a.items {
				form, err := jsontext.Encode(item)
				if err != nil {
					return err
				}
				known[item["id"].(string)] = form
			}
		}
		form := known[items[i].ID]
		if size += int64(len(form)); size > o.h.MaxBody {
			return &http.MaxBytesError{Limit: o.h.MaxBody}
		}
		items[i] = inputMessage{}
		if form == nil || json.Unmarshal(form, &items[i]) != nil {
			return noResponse(at)
		}
	}
	return nil
}

// referenceType is the type of an item that stands for another one.
const referenceType = "item_reference"

// responseOfItem returns the ID of the response that has an item.
func responseOfItem(id string) string {
	_, rest, _ := strings.Cut(id, "_")
	return "resp_" + rest[:max(0, strings.LastIndexByte(rest, '_'))]
}
