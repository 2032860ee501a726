package sql_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/sql"
)

type row map[string]any

func (r row) Field(name string) (any, bool) { v, ok := r[name]; return v, ok }
func (r row) Value() any                    { return map[string]any(r) }

func decode(t *testing.T, text string) row {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var r row
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestConditions(t *testing.T) {
	t.Parallel()
	const document = `{"id":"proc.docs_x..0","n":5,"s":"Text","null":null,"yes":true,"list":[1,"a",{"k":1,"l":2}],"o":{"p":{"q":"deep"},"a b":1}}`
	parameters := map[string]any{"@prefix": "proc.", "@n": json.Number("5"), "@list": []any{json.Number("1"), "a"}}
	cases := []struct {
		name, condition string
		want            bool
	}{
		{"a prefix", "STARTSWITH(c.id, 'proc.docs_x..')", true},
		{"a prefix by parameter", "startswith(c.id, @prefix)", true},
		{"a prefix that is not one", "STARTSWITH(c.id, 'docs')", false},
		{"a prefix regardless of case", "STARTSWITH(c.s, 'tEX', true)", true},
		{"an end", "ENDSWITH(c.id, '..0')", true},
		{"a part", "CONTAINS(c.id, 'docs')", true},
		{"equality of numbers", "c.n = 5.0 AND c.n = @n", true},
		{"of texts", `c["s"] = "Text"`, true},
		{"of objects", "c.o.p = {q: 'deep'}", true},
		{"of lists", "c.list[0] = 1 AND [1,2] = [1,2]", true},
		{"values of two types are neither equal nor unequal", "c.n = '5' OR c.n != '5'", false},
		{"null is a value", "c['null'] = null AND IS_NULL(c['null']) AND IS_DEFINED(c['null'])", true},
		{"what is missing is not null", "IS_NULL(c.missing)", false},
		{"and not defined", "NOT IS_DEFINED(c.missing)", true},
		{"a comparison with it does not hold", "c.missing > 1 OR c.missing = null", false},
		{"nor does its negation", "NOT (c.missing > 1)", false},
		{"but OR needs one side only", "c.missing > 1 OR c.yes", true},
		{"AND fails by one side", "NOT (c.missing > 1 AND false)", true},
		{"AND binds stronger than OR", "true OR false AND false", true},
		{"NOT binds weaker than comparison", "NOT c.n = 4", true},
		{"ranges", "c.n >= 5 AND c.n <= 5 AND c.n < 6 AND c.n > 4 AND c.n <> 4", true},
		{"between", "c.n BETWEEN 4 AND 6 AND c.n NOT BETWEEN 6 AND 7", true},
		{"in", "c.n IN (1, 5) AND c.s NOT IN ('a', 'b')", true},
		{"in texts", "c.s IN ('Text')", true},
		{"like: any part", "c.s LIKE 'T%t' AND c.s LIKE '%ex%' AND c.s LIKE 'Text%'", true},
		{"like: the case counts", "c.s LIKE 't%'", false},
		{"like: the whole text", "c.s LIKE 'ex'", false},
		{"like: one character", "c.s LIKE 'T_xt' AND NOT c.s LIKE 'Text_'", true},
		{"like: one of some, and none of some", "c.s LIKE 'T[a-e]xt' AND c.s LIKE 'T[^xyz]xt' AND c.s NOT LIKE 'T[^e]xt'", true},
		{"like: dots mean themselves", "c.id LIKE 'proc.docs_x..%' AND c.id NOT LIKE 'proc%....%'", true},
		{"like: an escaped sign", "'50%' LIKE '50!%' ESCAPE '!' AND '500' NOT LIKE '50!%' ESCAPE '!'", true},
		{"like: a number is like nothing", "c.n LIKE '5' OR c.n NOT LIKE '5'", false},
		{"like: by parameter", "c.id LIKE @prefix || '%'", true},
		{"a list contains a value", "ARRAY_CONTAINS(c.list, 'a') AND ARRAY_CONTAINS(@list, c.n - 4)", true},
		{"a list contains no part of an object", "ARRAY_CONTAINS(c.list, {k: 1})", false},
		{"unless asked for", "ARRAY_CONTAINS(c.list, {k: 1}, true)", true},
		{"the length of a list", "ARRAY_LENGTH(c.list) = 3", true},
		{"case", "LOWER(c.s) = 'text' AND UPPER(c.s) = 'TEXT' AND LENGTH(c.s) = 4", true},
		{"types", "IS_NUMBER(c.n) AND IS_STRING(c.s) AND IS_BOOL(c.yes) AND IS_BOOLEAN(c.yes) AND IS_ARRAY(c.list) AND IS_OBJECT(c.o) AND IS_PRIMITIVE(c.s) AND NOT IS_PRIMITIVE(c.o)", true},
		{"deep paths", "c.o.p.q = 'deep' AND c.o['a b'] = 1 AND c.list[2].k = 1", true},
		{"a path through a text", "IS_DEFINED(c.s.t) OR IS_DEFINED(c.list[9]) OR IS_DEFINED(c.list.x)", false},
		{"arithmetic", "c.n * 2 - 1 = 9 AND c.n % 3 = 2 AND -c.n = -5 AND c.n / 2 = 2.5 AND 1 + 2 * 3 = 7", true},
		{"a division by zero is undefined", "IS_DEFINED(c.n / 0)", false},
		{"texts are joined", "c.s || '!' = 'Text!' AND CONCAT(c.s, 'a', 'b') = 'Textab'", true},
		{"escapes", `'it\'s' = "it's" AND '\u0041\n' != 'A'`, true},
		{"a number is no condition", "c.n", false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q, err := sql.Parse("SELECT * FROM c WHERE "+tc.condition, parameters)
			if err != nil {
				t.Fatal(err)
			}
			if got := q.Matches(decode(t, document)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestProjections(t *testing.T) {
	t.Parallel()
	const document = `{"id":"a","n":5,"o":{"p":1}}`
	cases := []struct{ name, query, want string }{
		{"everything", "SELECT * FROM c", `{"id":"a","n":5,"o":{"p":1}}`},
		{"a name of one's own for the container", "select * from root r where r.id = 'a'", `{"id":"a","n":5,"o":{"p":1}}`},
		{"the container's name", "SELECT VALUE leases.id FROM leases", `"a"`},
		{"an alias with AS", "SELECT VALUE x.id FROM leases AS x", `"a"`},
		{"root always stands for the document", "SELECT VALUE root.id FROM c", `"a"`},
		{"columns", "SELECT c.id, c['n'], c.o.p AS deep, c.n number FROM c", `{"deep":1,"id":"a","n":5,"number":5}`},
		{"a column without a name", "SELECT c.n + 1 FROM c", `{"$1":6}`},
		{"the document as a column", "SELECT c FROM c", `{"c":{"id":"a","n":5,"o":{"p":1}}}`},
		{"what is missing is left out", "SELECT c.id, c.missing FROM c", `{"id":"a"}`},
		{"a value", "SELECT VALUE c.n FROM c", `5`},
		{"no value", "SELECT VALUE c.missing FROM c", ``},
		{"values that are made", `SELECT VALUE {"item": c.n, list: [c.id, c.missing, true]} FROM c`, `{"item":5,"list":["a",true]}`},
		{"the plan's own form", `SELECT c.id, [{"item": c.n}] AS orderByItems, c AS payload FROM c WHERE (true) ORDER BY c.n`, `{"id":"a","orderByItems":[{"item":5}],"payload":{"id":"a","n":5,"o":{"p":1}}}`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q, err := sql.Parse(tc.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if v, ok := q.Project(decode(t, document)); ok {
				text, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				got = string(text)
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOrderIsByTypeThenByValue(t *testing.T) {
	t.Parallel()
	var rows []row
	for _, text := range []string{`{"v":"b"}`, `{"v":2}`, `{"v":true}`, `{}`, `{"v":null}`, `{"v":"a"}`, `{"v":10}`, `{"v":false}`} {
		rows = append(rows, decode(t, text))
	}
	for query, want := range map[string]string{
		"SELECT * FROM c ORDER BY c.v":      `[{},{"v":null},{"v":false},{"v":true},{"v":2},{"v":10},{"v":"a"},{"v":"b"}]`,
		"SELECT * FROM c ORDER BY c.v DESC": `[{"v":"b"},{"v":"a"},{"v":10},{"v":2},{"v":true},{"v":false},{"v":null},{}]`,
	} {
		q, err := sql.Parse(query, nil)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(rows, func(a, b row) int { return q.CompareKeys(q.OrderKeys(a), q.OrderKeys(b)) })
		if got, _ := json.Marshal(rows); string(got) != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestAggregates(t *testing.T) {
	t.Parallel()
	rows := []sql.Row{decode(t, `{"n":1}`), decode(t, `{"n":3}`), decode(t, `{}`), decode(t, `{"n":8}`)}
	for query, want := range map[string]string{
		"SELECT VALUE COUNT(1) FROM c":                                     `4`,
		"SELECT VALUE COUNT(c.n) FROM c":                                   `3`,
		"SELECT VALUE SUM(c.n) FROM c":                                     `12`,
		"SELECT VALUE AVG(c.n) FROM c":                                     `4`,
		"SELECT VALUE MIN(c.n) FROM c":                                     `1`,
		"SELECT VALUE MAX(c.n) FROM c":                                     `8`,
		`SELECT VALUE [{"item": {"max": MAX(c.n), "n": COUNT(1)}}] FROM c`: `[{"item":{"max":8,"n":4}}]`,
	} {
		q, err := sql.Parse(query, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := q.Fold(rows)
		if got, _ := json.Marshal(v); !ok || string(got) != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestPlans(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, query, rewritten string }{
		{"nothing to rewrite", "SELECT * FROM c WHERE c.n = 1", ""},
		{"an order", "SELECT c.id FROM c WHERE c.n > 1 ORDER BY c.n DESC", `SELECT c._rid, [{"item": c.n}] AS orderByItems, {"id": c.id} AS payload FROM c WHERE (c.n > 1) AND ({documentdb-formattableorderbyquery-filter}) ORDER BY c.n DESC`},
		{"a count", "SELECT VALUE COUNT(1) FROM c WHERE c.n > 1", `SELECT VALUE [{"item": COUNT(1)}] FROM c WHERE (c.n > 1)`},
		{"an average", "SELECT VALUE AVG(c.n) FROM c", `SELECT VALUE [{"item": {"sum": SUM(c.n), "count": COUNT(c.n)}}] FROM c`},
		{"an extreme", "SELECT VALUE MIN(c.n) FROM c", `SELECT VALUE [{"item": MIN(c.n), "item2": {"min": MIN(c.n), "count": COUNT(c.n)}}] FROM c`},
		{"a named count", "SELECT COUNT(1) AS n FROM c WHERE c.n > 1", `SELECT {"n": {"item": COUNT(1)}} AS payload FROM c WHERE (c.n > 1)`},
		{"two aggregates, one without a name", "SELECT SUM(c.n), AVG(c.n) AS a FROM c", `SELECT {"$1": {"item": SUM(c.n)}, "a": {"item": {"sum": SUM(c.n), "count": COUNT(c.n)}}} AS payload FROM c`},
		{"a window", "SELECT VALUE c.id FROM c OFFSET 2 LIMIT 3", "SELECT VALUE c.id FROM c OFFSET 0 LIMIT 5"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q, err := sql.Parse(tc.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := q.Plan().RewrittenQuery; got != tc.rewritten {
				t.Errorf("got %s, want %s", got, tc.rewritten)
			}
		})
	}
}

func TestThePlanOfNamedAggregatesGroupsByNothing(t *testing.T) {
	t.Parallel()
	q, err := sql.Parse("SELECT COUNT(1) AS n, AVG(c.n) AS a FROM c", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(q.Plan())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"aggregates":[]`, `"groupByExpressions":[]`, `"groupByAliases":["n","a"]`, `"groupByAliasToAggregateType":{"a":"Average","n":"Count"}`, `"hasSelectValue":false`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
	if needs := q.Features(); !slices.Equal(needs, []string{"Aggregate", "NonValueAggregate", "MultipleAggregates"}) {
		t.Errorf("needs %v", needs)
	}
}

func TestSyntaxErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	cases := []struct {
		query      string
		start, end int
	}{
		{"SELECT * FRM c", 14, 14},
		{"", 0, 0},
		{"SELECT * FROM c WHERE", 21, 21},
		{"SELECT * FROM c WHERE d.n = 1", 22, 23},
		{"SELECT * FROM c WHERE c.n = @missing", 28, 36},
		{"SELECT * FROM c WHERE NOSUCH(c.n)", 22, 28},
		{"SELECT * FROM c WHERE LOWER(c.a, c.b)", 22, 27},
		{"SELECT * FROM c WHERE c.s = 'open", 28, 33},
		{"SELECT * FROM c JOIN t IN c.tags", 16, 20},
		{"SELECT * FROM c GROUP BY c.n", 16, 21},
		{"SELECT TOP -1 * FROM c", 11, 12},
		{"SELECT * FROM c; DROP", 15, 16},
		{"SELECT , FROM c", 7, 8},
		{"SELECT * FROM c WHERE c.s LIKE", 30, 30},
		{"SELECT c.n, COUNT(1) AS n FROM c", 7, 25},
		{"SELECT COUNT(1) + 1 AS n FROM c", 7, 24},
	}
	for _, tc := range cases {
		t.Run(tc.query, func(t *testing.T) {
			t.Parallel()
			_, err := sql.Parse(tc.query, nil)
			var wrong *sql.SyntaxError
			if !errors.As(err, &wrong) || wrong.Start != tc.start || wrong.End != tc.end {
				t.Errorf("got %+v, want %d to %d", err, tc.start, tc.end)
			}
		})
	}
}

// TestARefusalNamesWhatItRefuses, and leaves alone what only has such a name.
func TestARefusalNamesWhatItRefuses(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"SELECT c.n, COUNT(1) AS n FROM c GROUP BY c.n":                  "GROUP BY",
		"SELECT t FROM c JOIN t IN c.tags":                               "JOIN",
		"SELECT DISTINCT c.n FROM c":                                     "DISTINCT",
		"SELECT DISTINCT VALUE c.n FROM c":                               "DISTINCT",
		"SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags)":  "subqueries",
		"SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags) FROM c":     "subqueries",
		"SELECT * FROM (SELECT * FROM c) AS d":                           "subqueries",
		"SELECT c.n ?? 0 AS n FROM c":                                    "the operator ??",
		"SELECT c.n > 1 ? 'many' : 'one' AS n FROM c":                    "the operator ?",
		"SELECT c.n & 1 AS n FROM c":                                     "the operator &",
		"SELECT VALUE t FROM t IN c.tags":                                "paths and IN in FROM",
		"SELECT * FROM c.tags":                                           "paths and IN in FROM",
		"SELECT udf.double(c.n) FROM c":                                  "user-defined functions",
		"SELECT * FROM c ORDER BY RANK FullTextScore(c.s, 'a')":          "ORDER BY RANK",
		"SELECT StringToNumber(c.s) AS n FROM c":                         "the function StringToNumber",
		"SELECT c.group, c.join, c.select, c.distinct, c.udf FROM c":     "",
		"SELECT c.n AS join FROM c WHERE c['group'] = '?' ORDER BY c.by": "",
		"SELECT c.udf.rank FROM c":                                       "",
	} {
		_, err := sql.Parse(query, nil)
		var wrong *sql.SyntaxError
		switch {
		case want == "" && err != nil, want != "" && (!errors.As(err, &wrong) || wrong.Refused != want):
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, query := range []string{
		"SELECT * FROM c WHERE STARTSWITH(c.id, 'x') AND c.n IN (1,2.5e3) ORDER BY c.n DESC OFFSET 1 LIMIT 2",
		`SELECT c.a AS b, VALUE FROM root r WHERE NOT (r["x"][0] = null) || 'a\u0041'`,
		"SELECT VALUE [{\"item\": COUNT(1)}] FROM c", "SELECT ((((((", "'", `"\`, "@", "1e", "--",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := sql.Parse(query, map[string]any{"@p": "v"})
		var wrong *sql.SyntaxError
		if err != nil && (!errors.As(err, &wrong) || wrong.Start > wrong.End || wrong.End > len(query)) {
			t.Fatalf("%q: %v", query, err)
		}
		if err == nil {
			q.Matches(row{"a": "b"})
			q.Project(row{"a": "b"})
			q.Plan()
		}
	})
}
