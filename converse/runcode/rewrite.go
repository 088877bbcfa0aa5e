// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"math/big"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// fileName is the name of a program in positions.
const fileName = "program"

// The names of the functions that a rewritten program calls. No program can write them.
const (
	nameAttribute = "$."
	nameKey       = "$key"
	nameNew       = "$new"
	nameSlice     = "$slice"
	nameSpread    = "$spread"
	nameBinary    = "$"  // and the operator
	nameInplace   = "$=" // and the operator
	nameUpdate    = "$[" // and the operator
)

// The operators that are calls.
var (
	operators = []syntax.Token{
		syntax.PLUS, syntax.MINUS, syntax.STAR, syntax.SLASH, syntax.SLASHSLASH, syntax.PERCENT, syntax.AMP, syntax.PIPE, syntax.CIRCUMFLEX,
		syntax.LTLT, syntax.GTGT, syntax.EQL, syntax.NEQ, syntax.LT, syntax.GT, syntax.LE, syntax.GE, syntax.IN, syntax.NOT_IN,
	}
	augmented = map[syntax.Token]syntax.Token{
		syntax.PLUS_EQ: syntax.PLUS, syntax.MINUS_EQ: syntax.MINUS, syntax.STAR_EQ: syntax.STAR, syntax.SLASH_EQ: syntax.SLASH,
		syntax.SLASHSLASH_EQ: syntax.SLASHSLASH, syntax.PERCENT_EQ: syntax.PERCENT, syntax.AMP_EQ: syntax.AMP, syntax.PIPE_EQ: syntax.PIPE,
		syntax.CIRCUMFLEX_EQ: syntax.CIRCUMFLEX, syntax.LTLT_EQ: syntax.LTLT, syntax.GTGT_EQ: syntax.GTGT,
	}
)

// compile parses and rewrites a program. The names of defined are the only ones that it can
// use.
func compile(text string, defined starlark.StringDict) (*starlark.Program, error) {
	options := &syntax.FileOptions{While: true}
	file, err := options.Parse(fileName, text, 0)
	if err != nil {
		return nil, err
	}
	if len(file.Stmts) == 0 {
		return nil, syntax.Error{Pos: syntax.MakePosition(&file.Path, 1, 1), Msg: "the program is empty"}
	}
	if last, ok := file.Stmts[len(file.Stmts)-1].(*syntax.ExprStmt); ok {
		start, _ := last.Span()
		file.Stmts[len(file.Stmts)-1] = &syntax.ReturnStmt{Return: start, Result: last.X}
	}
	r := &rewriter{}
	r.stmts(file.Stmts)
	if r.err != nil {
		return nil, *r.err
	}
	start := syntax.Start(file.Stmts[0])
	file.Stmts = []syntax.Stmt{&syntax.DefStmt{Def: start, Name: &syntax.Ident{NamePos: start, Name: fileName}, Lparen: start, Rparen: start, Body: file.Stmts}}
	return starlark.FileProgram(file, defined.Has)
}

// rewriter replaces what a program can do without a bound by calls. It changes the syntax
// tree in place.
type rewriter struct{ err *resolve.Error }

func (r *rewriter) fail(at syntax.Position, text string) {
	if r.err == nil {
		r.err = &resolve.Error{Pos: at, Msg: text}
	}
}

// call returns a call of one of the functions above.
func call(at syntax.Position, name string, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: name}, Lparen: at, Args: args, Rparen: at}
}

func (r *rewriter) stmts(list []syntax.Stmt) {
	for i := range list {
		list[i] = r.stmt(list[i])
	}
}

func (r *rewriter) stmt(stmt syntax.Stmt) syntax.Stmt {
	switch s := stmt.(type) {
	case *syntax.AssignStmt:
		return r.assign(s)
	case *syntax.DefStmt:
		r.params(s.Params)
		r.stmts(s.Body)
	case *syntax.ExprStmt:
		s.X = r.expr(s.X)
	case *syntax.IfStmt:
		s.Cond = r.expr(s.Cond)
		r.stmts(s.True)
		r.stmts(s.False)
	case *syntax.ForStmt:
		r.target(s.Vars)
		s.X = r.expr(s.X)
		r.stmts(s.Body)
	case *syntax.WhileStmt:
		s.Cond = r.expr(s.Cond)
		r.stmts(s.Body)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = r.expr(s.Result)
		}
	case *syntax.LoadStmt:
		r.fail(s.Load, "load is not available: a program has no other files")
	case *syntax.BranchStmt:
	}
	return stmt
}

// assign rewrites an assignment. x += y is x = $=+(x, y), and x[k] += y is $[+(x, k, y).
func (r *rewriter) assign(s *syntax.AssignStmt) syntax.Stmt {
	s.RHS = r.expr(s.RHS)
	op, ok := augmented[s.Op]
	if !ok {
		r.target(s.LHS)
		return s
	}
	switch left := unparen(s.LHS).(type) {
	case *syntax.Ident:
		s.Op, s.RHS = syntax.EQ, call(s.OpPos, nameInplace+op.String(), &syntax.Ident{NamePos: left.NamePos, Name: left.Name}, s.RHS)
	case *syntax.IndexExpr:
		return &syntax.ExprStmt{X: call(s.OpPos, nameUpdate+op.String(), r.expr(left.X), r.expr(left.Y), s.RHS)}
	default:
		r.fail(s.OpPos, "only a variable or an item can be changed with "+s.Op.String())
	}
	return s
}

func unparen(e syntax.Expr) syntax.Expr {
	for {
		paren, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = paren.X
	}
}

// target rewrites what is assigned to.
func (r *rewriter) target(e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		r.target(e.X)
	case *syntax.IndexExpr:
		e.X, e.Y = r.expr(e.X), r.key(e.Y)
	case *syntax.TupleExpr:
		for _, item := range e.List {
			r.target(item)
		}
	case *syntax.ListExpr:
		for _, item := range e.List {
			r.target(item)
		}
	case *syntax.DotExpr:
		r.fail(e.Dot, "attributes cannot be assigned to")
	}
}

func (r *rewriter) params(list []syntax.Expr) {
	for _, p := range list {
		if with, ok := p.(*syntax.BinaryExpr); ok {
			with.Y = r.expr(with.Y)
		}
	}
}

func (r *rewriter) exprs(list []syntax.Expr) {
	for i := range list {
		list[i] = r.expr(list[i])
	}
}

// key rewrites an index.
func (r *rewriter) key(e syntax.Expr) syntax.Expr {
	if _, ok := unparen(e).(*syntax.Literal); ok {
		return r.expr(e)
	}
	return call(syntax.Start(e), nameKey, r.expr(e))
}

func (r *rewriter) expr(expr syntax.Expr) syntax.Expr {
	switch e := expr.(type) {
	case *syntax.Literal:
		if i, ok := e.Value.(*big.Int); ok && i.BitLen() > maxBits {
			r.fail(e.TokenPos, tooManyBits().Error())
		}
		if e.Token == syntax.BYTES {
			r.fail(e.TokenPos, "bytes are not available: use a string")
		}
	case *syntax.ParenExpr:
		e.X = r.expr(e.X)
	case *syntax.CallExpr:
		r.callExpr(e)
	case *syntax.DotExpr:
		name := &syntax.Literal{Token: syntax.STRING, TokenPos: e.NamePos, Raw: e.Name.Name, Value: e.Name.Name}
		return call(e.Dot, nameAttribute, r.expr(e.X), name)
	case *syntax.Comprehension:
		return r.comprehension(e)
	case *syntax.DictExpr:
		for _, entry := range e.List {
			entry := entry.(*syntax.DictEntry)
			entry.Key, entry.Value = r.key(entry.Key), r.expr(entry.Value)
		}
		return call(e.Lbrace, nameNew, e)
	case *syntax.LambdaExpr:
		r.params(e.Params)
		e.Body = r.expr(e.Body)
	case *syntax.ListExpr:
		r.exprs(e.List)
	case *syntax.TupleExpr:
		r.exprs(e.List)
	case *syntax.CondExpr:
		e.Cond, e.True, e.False = r.expr(e.Cond), r.expr(e.True), r.expr(e.False)
	case *syntax.UnaryExpr:
		if e.X != nil {
			e.X = r.expr(e.X)
		}
	case *syntax.BinaryExpr:
		e.X, e.Y = r.expr(e.X), r.expr(e.Y)
		if e.Op != syntax.AND && e.Op != syntax.OR {
			return call(e.OpPos, nameBinary+e.Op.String(), e.X, e.Y)
		}
	case *syntax.SliceExpr:
		r.slice(e)
	case *syntax.IndexExpr:
		e.X, e.Y = r.expr(e.X), r.key(e.Y)
	}
	return expr
}

func (r *rewriter) callExpr(e *syntax.CallExpr) {
	e.Fn = r.expr(e.Fn)
	for i, arg := range e.Args {
		switch a := arg.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ { // a name and its value
				a.Y = r.expr(a.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR || a.Op == syntax.STARSTAR {
				a.X = call(a.OpPos, nameSpread, r.expr(a.X))
				continue
			}
		}
		e.Args[i] = r.expr(arg)
	}
}

func (r *rewriter) slice(e *syntax.SliceExpr) {
	e.X = r.expr(e.X)
	for _, part := range []*syntax.Expr{&e.Lo, &e.Hi, &e.Step} {
		if *part != nil {
			*part = r.expr(*part)
		}
	}
	step := &syntax.Literal{Token: syntax.INT, TokenPos: e.Lbrack, Value: int64(0)}
	if e.Step != nil {
		step.Value = int64(1)
	}
	e.X = call(e.Lbrack, nameSlice, e.X, step)
}

func (r *rewriter) comprehension(e *syntax.Comprehension) syntax.Expr {
	for _, clause := range e.Clauses {
		switch c := clause.(type) {
		case *syntax.ForClause:
			r.target(c.Vars)
			c.X = r.expr(c.X)
		case *syntax.IfClause:
			c.Cond = r.expr(c.Cond)
		}
	}
	if !e.Curly {
		e.Body = r.expr(e.Body)
		return e
	}
	entry, ok := e.Body.(*syntax.DictEntry)
	if !ok {
		r.fail(e.Lbrack, "sets are not available: use a dict")
		return e
	}
	entry.Key, entry.Value = r.key(entry.Key), r.expr(entry.Value)
	return call(e.Lbrack, nameNew, e)
}
