package sql

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseExpression reads, from the weakest to the strongest binding: OR, AND, NOT, comparisons,
// sums, products.
func (p *parser) parseExpression() (expression, error) {
	if p.depth++; p.depth > deepest {
		return nil, p.unexpected()
	}
	defer func() { p.depth-- }()
	left, err := p.parseAnd()
	for err == nil && p.accept("OR") {
		var right expression
		right, err = p.parseAnd()
		left = or{left, right}
	}
	return left, err
}

func (p *parser) parseAnd() (expression, error) {
	left, err := p.parseNot()
	for err == nil && p.accept("AND") {
		var right expression
		right, err = p.parseNot()
		left = and{left, right}
	}
	return left, err
}

func (p *parser) parseNot() (expression, error) {
	negated := false
	for p.accept("NOT") {
		negated = !negated
	}
	e, err := p.parseComparison()
	if negated {
		return not{e}, err
	}
	return e, err
}

func (p *parser) parseComparison() (expression, error) {
	left, err := p.parseSum()
	if err != nil {
		return nil, err
	}
	for _, operator := range [...]string{"=", "!=", "<>", "<", "<=", ">", ">="} {
		if p.accept(operator) {
			right, err := p.parseSum()
			return comparison{operator, left, right}, err
		}
	}
	negated := p.accept("NOT")
	var e expression
	switch {
	case p.accept("IN"):
		if err := p.expect("("); err != nil {
			return nil, err
		}
		values, err := p.parseList(")")
		if err != nil {
			return nil, err
		}
		e = in{left, values}
	case p.accept("BETWEEN"):
		low, err := p.parseSum()
		if err != nil {
			return nil, err
		}
		if err := p.expect("AND"); err != nil {
			return nil, err
		}
		high, err := p.parseSum()
		if err != nil {
			return nil, err
		}
		e = and{comparison{">=", left, low}, comparison{"<=", left, high}}
	case p.accept("LIKE"):
		var err error
		if e, err = p.parseLike(left); err != nil {
			return nil, err
		}
	case negated:
		return nil, p.unexpected()
	default:
		return left, nil
	}
	if negated {
		return not{e}, nil
	}
	return e, nil
}

// parseLike reads the pattern and the sign that takes the meaning from the one after it.
func (p *parser) parseLike(left expression) (expression, error) {
	pattern, err := p.parseSum()
	if err != nil {
		return nil, err
	}
	e := like{text: left, pattern: pattern}
	if p.accept("ESCAPE") {
		t := p.peek()
		r, size := utf8.DecodeRuneInString(t.text)
		if t.kind != text || size == 0 || size != len(t.text) {
			return nil, p.unexpected()
		}
		p.at++
		e.escape = r
	}
	return e, nil
}

func (p *parser) parseSum() (expression, error) {
	return p.parseOperators(p.parseProduct, "+", "-", "||")
}

func (p *parser) parseProduct() (expression, error) {
	return p.parseOperators(p.parseSigned, "*", "/", "%")
}

func (p *parser) parseOperators(operand func() (expression, error), operators ...string) (expression, error) {
	left, err := operand()
	for err == nil {
		i := slices.IndexFunc(operators, p.accept)
		if i < 0 {
			break
		}
		var right expression
		right, err = operand()
		left = arithmetic{operators[i], left, right}
	}
	return left, err
}

func (p *parser) parseSigned() (expression, error) {
	negative := false
	for p.peek().is("-") || p.peek().is("+") {
		negative = negative != p.next().is("-")
	}
	e, err := p.parseSteps()
	if err != nil || !negative {
		return e, err
	}
	if l, ok := e.(literal); ok {
		if n, ok := asNumber(l.value); ok {
			return literal{-n}, nil
		}
	}
	return arithmetic{"-", literal{0.0}, e}, nil
}

// parseSteps reads a primary and the .name, ["name"] and [n] that follow it.
func (p *parser) parseSteps() (expression, error) {
	e, err := p.parsePrimary()
	for err == nil {
		var step any
		switch {
		case p.accept("."):
			t := p.next()
			if t.kind != word {
				p.at--
				return nil, p.unexpected()
			}
			step = t.text
		case p.accept("["):
			switch t := p.next(); t.kind {
			case text:
				step = t.text
			case number:
				n, err := strconv.Atoi(t.text)
				if err != nil {
					p.at--
					return nil, p.unexpected()
				}
				step = n
			default:
				p.at--
				return nil, p.unexpected()
			}
			err = p.expect("]")
		default:
			return e, nil
		}
		if of, ok := e.(path); ok {
			e = path{append(slices.Clone(of.steps), step)}
		} else {
			e = member{e, step}
		}
	}
	return nil, err
}

func (p *parser) parsePrimary() (expression, error) {
	switch t := p.next(); t.kind {
	case number:
		return literal{json.Number(t.text)}, nil
	case text:
		return literal{t.text}, nil
	case parameter:
		if v, ok := p.parameters[t.text]; ok {
			return literal{v}, nil
		}
	case word:
		return p.parseWord(t)
	case symbol:
		switch t.text {
		case "(":
			e, err := p.parseExpression()
			if err != nil {
				return nil, err
			}
			return e, p.expect(")")
		case "[":
			values, err := p.parseList("]")
			return list{values}, err
		case "{":
			return p.parseObject()
		}
	case end:
		return nil, p.unexpected()
	}
	p.at--
	return nil, p.unexpected()
}

func (p *parser) parseWord(t token) (expression, error) {
	switch {
	case p.peek().is("("):
		return p.parseCall(t)
	case t.is("true"):
		return literal{true}, nil
	case t.is("false"):
		return literal{false}, nil
	case t.is("null"):
		return literal{nil}, nil
	case t.is("undefined"):
		return literal{Undefined{}}, nil
	case t.text == p.query.alias, t.is("root"):
		return path{}, nil
	}
	p.at--
	return nil, p.unexpected()
}

func (p *parser) parseCall(name token) (expression, error) {
	p.at++ // the parenthesis
	arguments, err := p.parseList(")")
	if err != nil {
		return nil, err
	}
	upper := strings.ToUpper(name.text)
	switch upper {
	case "COUNT", "SUM", "MIN", "MAX", "AVG":
		if len(arguments) == 1 {
			p.query.functions = append(p.query.functions, upper)
			return aggregate{upper, arguments[0]}, nil
		}
	}
	known, ok := scalarFunction(upper)
	if !ok {
		return nil, &SyntaxError{Start: name.start, End: name.end, Refused: "the function " + name.text}
	}
	if len(arguments) < known.atLeast || len(arguments) > known.atMost {
		return nil, &SyntaxError{Start: name.start, End: name.end, Near: name.text}
	}
	return function{known.of, arguments}, nil
}

// parseList reads expressions up to the closing symbol, whose partner has been read.
func (p *parser) parseList(closing string) ([]expression, error) {
	var values []expression
	if p.accept(closing) {
		return values, nil
	}
	for {
		e, err := p.parseExpression()
		if err != nil {
			return nil, err
		}
		values = append(values, e)
		if !p.accept(",") {
			return values, p.expect(closing)
		}
	}
}

func (p *parser) parseObject() (expression, error) {
	var properties []property
	if p.accept("}") {
		return object{}, nil
	}
	for {
		if k := p.peek().kind; k != word && k != text {
			return nil, p.unexpected()
		}
		name := p.next().text
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		e, err := p.parseExpression()
		if err != nil {
			return nil, err
		}
		properties = append(properties, property{name, e})
		if !p.accept(",") {
			return object{properties}, p.expect("}")
		}
	}
}
