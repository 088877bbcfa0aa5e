// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"reflect"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/contents"
)

// Each kind of content may enter a history as it is.
func TestByValueKeepsEachKind(t *testing.T) {
	for _, c := range contents.All() {
		if kept := ByValue([]canister.Content{c}); len(kept) != 1 || !reflect.DeepEqual(kept[0], c) {
			t.Errorf("%T becomes %+v", c, kept)
		}
	}
}
