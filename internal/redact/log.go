// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Core returns a core that passes the texts of each entry and its fields through
// clean before inner gets them. Field keys and the caller come from the source
// code and are not cleaned. inner decides which entries are written.
func Core(inner zapcore.Core, clean func(text string) string) zapcore.Core {
	return &core{Core: inner, clean: clean}
}

type core struct {
	zapcore.Core
	clean func(text string) string
}

// With implements [zapcore.Core].
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return Core(c.Core.With(c.fields(fields)), c.clean)
}

// Check implements [zapcore.Core]. It asks the inner core, which may sample
// entries or consist of several cores that do not all accept the entry.
func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	inner := c.Core.Check(entry, nil)
	if inner == nil {
		return checked
	}
	return checked.AddCore(entry, &accepted{core: *c, inner: inner})
}

// Write implements [zapcore.Core].
func (c *core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return c.Core.Write(c.entry(entry), c.fields(fields))
}

// accepted writes an entry that the inner cores have accepted.
type accepted struct {
	core
	inner *zapcore.CheckedEntry
}

func (a *accepted) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if err := WriteChecked(a.inner, a.entry(entry), a.fields(fields)); err != nil {
		return errors.New(a.clean(err.Error()))
	}
	return nil
}

// WriteChecked writes entry once to the cores of checked, which have accepted it,
// and returns their errors as one. zap itself only reports these errors.
func WriteChecked(checked *zapcore.CheckedEntry, entry zapcore.Entry, fields []zapcore.Field) error {
	var failed strings.Builder
	checked.Entry, checked.ErrorOutput = entry, zapcore.AddSync(&failed)
	checked.Write(fields...)
	if failed.Len() == 0 {
		return nil
	}
	_, cause, _ := strings.Cut(strings.TrimSpace(failed.String()), "write error: ")
	return errors.New(cause)
}

func (c *core) entry(entry zapcore.Entry) zapcore.Entry {
	entry.Message = c.clean(entry.Message)
	entry.LoggerName = c.clean(entry.LoggerName)
	entry.Stack = c.clean(entry.Stack)
	return entry
}

func (c *core) fields(fields []zapcore.Field) []zapcore.Field {
	cleaned := make([]zapcore.Field, len(fields))
	for i, field := range fields {
		cleaned[i] = c.field(field)
	}
	return cleaned
}

func (c *core) field(f zapcore.Field) zapcore.Field {
	switch f.Type {
	case zapcore.StringType:
		f.String = c.clean(f.String)
	case zapcore.ByteStringType, zapcore.BinaryType:
		if bytes, ok := f.Interface.([]byte); ok {
			f.Interface = []byte(c.clean(string(bytes)))
		}
	case zapcore.ErrorType, zapcore.StringerType:
		return zap.String(f.Key, c.clean(printed(f)))
	case zapcore.ReflectType, zapcore.ObjectMarshalerType, zapcore.ArrayMarshalerType, zapcore.InlineMarshalerType:
		return c.composed(f)
	}
	return f
}

// printed returns the text of an error or a stringer. The value may be nil or
// panic, which zap's own encoder handles.
func printed(f zapcore.Field) string {
	encoder := zapcore.NewMapObjectEncoder()
	f.AddTo(encoder)
	if text, ok := encoder.Fields[f.Key].(string); ok {
		return text
	}
	return fmt.Sprint(encoder.Fields)
}

// composed replaces a field of several values if it contains a secret.
func (c *core) composed(f zapcore.Field) zapcore.Field {
	encoder := zapcore.NewMapObjectEncoder()
	f.AddTo(encoder)
	raw, err := json.Marshal(encoder.Fields)
	if err != nil {
		return zap.String(cmp.Or(f.Key, "fields"), c.clean(fmt.Sprint(encoder.Fields)))
	}
	if cleaned := JSON(raw, c.clean); string(cleaned) != string(raw) {
		var all map[string]json.RawMessage
		if json.Unmarshal(cleaned, &all) == nil && all[f.Key] != nil {
			cleaned = all[f.Key]
		}
		return zap.Reflect(cmp.Or(f.Key, "fields"), cleaned)
	}
	return f
}
