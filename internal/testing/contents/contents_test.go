// SPDX-License-Identifier: Apache-2.0

package contents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"

	"github.com/consort-go/consort/canister"
)

// kinds are the names of the types that implement [canister.Content], from its source.
func kinds(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../canister/content.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, declaration := range file.Decls {
		if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.Name == "content" {
			found[method.Recv.List[0].Type.(*ast.Ident).Name] = true
		}
	}
	return found
}

// Each kind of content has a sample, and the JSON form of a message with it can be read
// again.
func TestEachKindHasASampleThatIsReadAgain(t *testing.T) {
	missing := kinds(t)
	if len(missing) < 6 {
		t.Fatalf("canister/content.go has the kinds %v", missing)
	}
	for _, c := range All() {
		delete(missing, reflect.TypeOf(c).Name())
		sent := canister.User{Head: canister.Head{ID: "u"}, Content: []canister.Content{c}}
		text, err := canister.Marshal(sent)
		if err != nil {
			t.Errorf("%T: %v", c, err)
			continue
		}
		if back, err := canister.Unmarshal(text); err != nil || !reflect.DeepEqual(back, canister.Canister(sent)) {
			t.Errorf("%T is written as %s and read as %+v, %v", c, text, back, err)
		}
	}
	for kind := range missing {
		t.Errorf("All has no %s", kind)
	}
}
