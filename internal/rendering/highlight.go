// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// highlighter colours the code of one block, part by part. It never changes the text.
type highlighter struct {
	language string
	context  string // the part before, where a comment or a string may have begun
	off      bool   // the language is unknown, or was too slow
}

// maxHighlight bounds the time to highlight a part. Beyond it the rest of the block
// has no colours: some rules of some languages backtrack.
const maxHighlight = time.Second

// lexersByName are the lexers by name and alias, in lower case. The registry's own search
// also tries patterns of file names, which is slow.
var lexersByName = sync.OnceValue(func() map[string]chroma.Lexer {
	all := map[string]chroma.Lexer{}
	for _, lexer := range lexers.GlobalLexerRegistry.Lexers {
		about := lexer.Config()
		for _, name := range append(about.Aliases, about.Name) {
			all[strings.ToLower(name)] = lexer
		}
	}
	return all
})

// highlight returns the next part of the code in colours. Parts end at the end of a line.
func (h *highlighter) highlight(style Style, source string) []span {
	if !style.Color || h.language == "" || h.off {
		return []span{{text: source}}
	}
	lexer := lexersByName()[strings.ToLower(h.language)]
	if lexer == nil {
		h.off = true
		return []span{{text: source}}
	}
	spans := lex(lexer, h.context+source, len(h.context), style)
	if spans == nil {
		h.off = true
		return []span{{text: source}}
	}
	h.context = source + "\n"
	return spans
}

// lex returns the tokens of source from an offset on; nil if the lexer is too slow or
// changed the text.
func lex(lexer chroma.Lexer, source string, from int, style Style) []span {
	tokens, err := lexer.Tokenise(nil, source)
	if err != nil {
		return nil
	}
	began := time.Now()
	var spans []span
	at := 0
	for token := tokens(); token != chroma.EOF; token = tokens() {
		if !strings.HasPrefix(source[at:], token.Value) {
			if at+len(token.Value) != len(source)+1 || !strings.HasPrefix(token.Value, source[at:]) {
				return nil
			}
			token.Value = source[at:] // lexers may add a newline to the end
		}
		if end := at + len(token.Value); end > from {
			spans = append(spans, span{text: source[max(at, from):end], ink: style.tokenInk(token.Type)})
		}
		at += len(token.Value)
		if time.Since(began) > maxHighlight {
			return nil
		}
	}
	if at != len(source) {
		return nil
	}
	return spans
}

// tokenInk returns the ink of a kind of token.
func (s Style) tokenInk(kind chroma.TokenType) ink {
	switch kind {
	case chroma.KeywordType, chroma.NameClass, chroma.NameBuiltin, chroma.NameBuiltinPseudo, chroma.NameException:
		return ink{color: s.shade(cyan)}
	case chroma.NameFunction, chroma.NameTag, chroma.NameDecorator:
		return ink{color: s.shade(blue)}
	case chroma.NameAttribute:
		return ink{color: s.shade(cyan)}
	case chroma.GenericDeleted:
		return s.badInk()
	case chroma.GenericInserted:
		return s.goodInk()
	case chroma.GenericHeading, chroma.GenericSubheading, chroma.GenericStrong:
		return boldInk
	}
	switch kind.Category() {
	case chroma.Keyword:
		return ink{color: s.shade(magenta)}
	case chroma.Comment:
		return ink{color: gray}
	}
	switch kind.SubCategory() {
	case chroma.LiteralString:
		return ink{color: green}
	case chroma.LiteralNumber:
		return s.codeInk()
	}
	return ink{}
}
