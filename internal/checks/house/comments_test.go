// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// uncapitalized matches a first word that begins no sentence, so that it is a name.
var uncapitalized = regexp.MustCompile(`^[a-z]\w*$`)

// A comment that begins with a name begins with the name that it documents: after a
// renaming, it would name something that is gone.
func TestCommentsNameWhatTheyDocument(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(path, root)
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, ".pb.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			name, doc := documented(d)
			if first, _, _ := strings.Cut(doc.Text(), " "); uncapitalized.MatchString(first) && first != name {
				t.Errorf("%s: the comment on %s begins with %s", files.Position(d.Pos()), name, first)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// documented returns the name that a declaration declares, if it is one, and its comment. The
// comment on a test says what is tested.
func documented(d ast.Decl) (string, *ast.CommentGroup) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !strings.HasPrefix(d.Name.Name, "Test") {
			return d.Name.Name, d.Doc
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || len(d.Specs) != 1 {
			break
		}
		switch spec := d.Specs[0].(type) {
		case *ast.TypeSpec:
			return spec.Name.Name, d.Doc
		case *ast.ValueSpec:
			return spec.Names[0].Name, d.Doc
		}
	}
	return "", nil
}
