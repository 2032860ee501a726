package sql

// refusedSymbols are the operators of the language that this package does not evaluate.
var refusedSymbols = map[string]string{
	"?": "the operator ?", "&": "the operator &", "|": "the operator |", "^": "the operator ^", "~": "the operator ~",
}

// refused names the first part of a query that is in the language and not in this package. "does
// not offer GROUP BY" tells a user more than the parser, which would complain about the first token
// that it meets, such as a column beside an aggregate.
func refused(tokens []token) error {
	from := false
	for i, t := range tokens {
		var before, after token
		if i > 0 {
			before = tokens[i-1]
		}
		if i+1 < len(tokens) {
			after = tokens[i+1]
		}
		if before.is(".") { // a property of that name
			continue
		}
		what := ""
		switch {
		case t.is("SELECT") && i > 0:
			what = "subqueries"
		case t.is("DISTINCT") && (before.is("SELECT") || before.is("VALUE")):
			what = "DISTINCT"
		case t.is("GROUP") && after.is("BY"):
			what = "GROUP BY"
		case t.is("JOIN") && from && after.kind == word:
			what = "JOIN"
		case t.is("RANK") && before.is("BY"):
			what = "ORDER BY RANK"
		case before.is("FROM") && t.kind == word && (after.is(".") || after.is("[") || after.is("IN")):
			what = "paths and IN in FROM"
		case t.is("udf") && after.is("."):
			what = "user-defined functions"
		case t.is("?") && after.is("?"):
			what = "the operator ??"
		case t.kind == symbol:
			what = refusedSymbols[t.text]
		}
		if what != "" {
			return &SyntaxError{Start: t.start, End: t.end, Refused: what}
		}
		from = from || t.is("FROM")
	}
	return nil
}
