// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/pattern"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits for schemas. They come from servers, and a few lines of a hostile schema
// can require an astronomical number of steps.
const (
	maxSchemaBytes  = 256 << 10       // size of one schema
	maxSchemaValues = 10_000          // JSON values in one schema
	maxPatterns     = 50_000          // bytes and instructions of all patterns in one schema
	maxSteps        = 200_000         // subschemas visited in one check, and what patterns cost; this also limits the stack
	maxCheckTime    = 2 * time.Second // duration of one check
)

// errTooCostly stops a check that exceeds its limits.
var errTooCostly = errors.New("checking takes too long")

// checker checks values against one compiled schema.
type checker struct {
	schema *jsonschema.Schema
	doc    any // the schema as compiled, for explanations

	patterns map[string]*ecmaPattern
	size     int // of the patterns, up to maxPatterns

	// The validator cannot carry the counter of a single check, so checks of one
	// schema run one at a time. They last microseconds.
	mu      sync.Mutex
	steps   int
	started time.Time
}

// newChecker compiles a schema, with formats as assertions or as annotations. The
// error explains why it is invalid.
func newChecker(schema json.RawMessage, assertFormats bool) (*checker, error) {
	if len(schema) > maxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", len(schema), maxSchemaBytes)
	}
	drafts, sure := draftsOf(schema)
	var first error
	for _, draft := range drafts {
		doc, count, faults := parse(schema)
		switch {
		case len(faults) > 0:
			return nil, errors.New("it is not usable JSON:" + report("schema", faults))
		case count > maxSchemaValues:
			return nil, fmt.Errorf("it has %d values, more than the limit of %d", count, maxSchemaValues)
		}
		c, err := compile(doc, draft, assertFormats)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	if sure {
		return nil, first
	}
	// The dialect is unknown, and the schema may be valid in it. Allow anything.
	return compile(true, jsonschema.Draft2020, false)
}

// schemaURL is the URL of the schema during compilation. It does not exist.
const schemaURL = "consort://schema/"

func compile(doc any, draft *jsonschema.Draft, assertFormats bool) (c *checker, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the schema cannot be compiled")
		}
	}()
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("a schema is an object")
	}
	c = &checker{doc: doc, patterns: map[string]*ecmaPattern{}}
	localize(doc, draft, assertFormats)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(draft)
	compiler.UseLoader(nowhere{})
	compiler.UseRegexpEngine(c.compilePattern)
	compiler.RegisterFormat(&jsonschema.Format{Name: stepFormat, Validate: c.step})
	compiler.AssertFormat()
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	c.schema, err = compiler.Compile(schemaURL)
	if err != nil {
		return nil, schemaProblem(doc, err)
	}
	return c, nil
}

// schemaProblem rewords an error of the compiler.
func schemaProblem(doc any, err error) error {
	var (
		invalid *jsonschema.SchemaValidationError
		broken  *jsonschema.ValidationError
		missing *jsonschema.JSONPointerNotFoundError
		anchor  *jsonschema.AnchorNotFoundError
	)
	local := func(at string) string { return strings.TrimPrefix(at, schemaURL) }
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &broken):
		return errors.New("it is not a valid JSON Schema:" + report("schema", explain(broken, doc, nil)))
	case errors.As(err, &missing):
		return fmt.Errorf("its $ref %q cannot be resolved", local(missing.URL))
	case errors.As(err, &anchor):
		return fmt.Errorf("its $ref %q cannot be resolved", local(anchor.Reference))
	}
	return errors.New(strings.ReplaceAll(err.Error(), schemaURL, ""))
}

// check returns the violations in value, sorted by location, or nil if the schema
// allows it. It is safe for concurrent use.
func (c *checker) check(value any) (violations []violation) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case errTooCostly:
			violations = []violation{{text: "is too large or too deep for the schema: " + errTooCostly.Error()}}
		default:
			violations = []violation{{text: "cannot be checked against the schema"}}
		}
	}()
	err := c.validate(value)
	if err == nil {
		return nil
	}
	if broken, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return explain(broken, value, c.doc)
	}
	return []violation{{text: err.Error()}}
}

// validate returns the error of the validator. It panics with errTooCostly if the check takes too
// long.
func (c *checker) validate(value any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps, c.started = 0, time.Now()
	return c.schema.Validate(value)
}

// step counts one visit of a subschema; see localize.
func (c *checker) step(any) error {
	c.spend(1)
	return nil
}

// spend counts steps, and stops the check if there are too many.
func (c *checker) spend(steps int) {
	before := c.steps
	c.steps += min(steps, maxSteps+1)
	if c.steps > maxSteps || c.steps/256 != before/256 && time.Since(c.started) > maxCheckTime {
		panic(errTooCostly)
	}
}

// nowhere is the loader for references that localize did not see. They refer to a
// schema that allows anything. Nothing is ever fetched.
type nowhere struct{}

func (nowhere) Load(string) (any, error) { return true, nil }

// compilePattern compiles a regular expression of a schema. Expressions that Go cannot
// compile, such as look-ahead, and ones that are too large, or too large for a text, match everything, so that the tool stays
// usable and does its own checks.
func (c *checker) compilePattern(text string) (jsonschema.Regexp, error) {
	if p := c.patterns[text]; p != nil {
		return p, nil
	}
	p := &ecmaPattern{source: text, checker: c}
	if compiled, err := pattern.Compile(text, min(pattern.MaxSize, maxPatterns-c.size)); err == nil {
		p.re = compiled
		c.size += compiled.Size + len(text)
	}
	c.patterns[text] = p
	return p, nil
}

// ecmaPattern is a regular expression that prints as it was written.
type ecmaPattern struct {
	source  string
	checker *checker
	re      *pattern.Pattern // nil matches everything
}

func (p *ecmaPattern) MatchString(s string) bool {
	if p.re == nil {
		return true
	}
	cost := p.re.Steps(s)
	if cost > maxSteps {
		return true
	}
	p.checker.spend(cost)
	return p.re.MatchString(s)
}

func (p *ecmaPattern) String() string { return p.source }
