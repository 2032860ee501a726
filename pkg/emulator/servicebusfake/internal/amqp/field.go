package amqp

import "fmt"

// A Composite is a described list: a performative, a terminus, a delivery state, a message section
// with fields. Only types of this package are composites.
type Composite interface {
	descriptor() uint64
	// visit names the fields in the order of the specification. Reading and writing are the same
	// walk, so that they cannot disagree.
	visit(f *fields)
}

// fields is the walk over the fields of one composite: reading takes the values off, writing puts
// them on.
type fields struct {
	writing bool
	values  List
	index   int
	err     error
}

// appendComposite adds a composite; trailing nulls are left out, as the specification lets a list
// be shortened (1.4).
func appendComposite(dst []byte, c Composite) ([]byte, error) {
	value, err := describe(c)
	if err != nil {
		return nil, err
	}
	return Append(dst, value)
}

func describe(c Composite) (Described, error) {
	f := fields{writing: true}
	c.visit(&f)
	for len(f.values) > 0 && f.values[len(f.values)-1] == nil {
		f.values = f.values[:len(f.values)-1]
	}
	return Described{Descriptor: c.descriptor(), Value: f.values}, f.err
}

// compose fills a composite from a decoded value.
func compose(value any, c Composite) error {
	described, ok := value.(Described)
	if !ok || described.Descriptor != c.descriptor() {
		return fmt.Errorf("amqp: %T instead of a %T", value, c)
	}
	list, ok := described.Value.(List)
	if !ok {
		return fmt.Errorf("amqp: a %T made of a %T", c, described.Value)
	}
	f := fields{values: list}
	c.visit(&f)
	if f.err != nil {
		return fmt.Errorf("amqp: %T: %w", c, f.err)
	}
	return nil
}

func (f *fields) write(value any) { f.values = append(f.values, value) }

func (f *fields) read() any {
	f.index++
	if f.index > len(f.values) {
		return nil
	}
	return f.values[f.index-1]
}

func (f *fields) fail(want, got any) {
	if f.err == nil {
		f.err = fmt.Errorf("field %d is a %T instead of a %T", f.index, got, want)
	}
}

// required is a field that is always written and must be there.
func required[T any](f *fields, p *T) {
	if f.writing {
		f.write(*p)
		return
	}
	value := f.read()
	v, ok := value.(T)
	if !ok {
		f.fail(*p, value)
		return
	}
	*p = v
}

// withDefault is a field whose absence means the default.
func withDefault[T comparable](f *fields, p *T, absent T) {
	if f.writing {
		if *p == absent {
			f.write(nil)
			return
		}
		f.write(*p)
		return
	}
	switch value := f.read().(type) {
	case nil:
		*p = absent
	case T:
		*p = value
	default:
		f.fail(*p, value)
	}
}

// spelledOut is a field whose absence means the zero value, but that is always written: some
// readers do not know what absence means.
func spelledOut[T comparable](f *fields, p *T) {
	if f.writing {
		f.write(*p)
		return
	}
	plain(f, p)
}

// plain is a field whose absence means the zero value.
func plain[T comparable](f *fields, p *T) {
	var zero T
	withDefault(f, p, zero)
}

// optional is a field whose absence and whose zero value differ in meaning.
func optional[T any](f *fields, p **T) {
	if f.writing {
		if *p == nil {
			f.write(nil)
			return
		}
		f.write(**p)
		return
	}
	switch value := f.read().(type) {
	case nil:
		*p = nil
	case T:
		*p = &value
	default:
		var want T
		f.fail(want, value)
	}
}

// anything is a field of any type.
func anything(f *fields, p *any) {
	if f.writing {
		f.write(*p)
		return
	}
	*p = f.read()
}

func binaries(f *fields, p *[]byte) {
	if f.writing {
		if *p == nil {
			f.write(nil)
			return
		}
		f.write(*p)
		return
	}
	switch value := f.read().(type) {
	case nil:
		*p = nil
	case []byte:
		*p = value
	default:
		f.fail(*p, value)
	}
}

func mapping(f *fields, p *Map) {
	if f.writing {
		if *p == nil {
			f.write(nil)
			return
		}
		f.write(*p)
		return
	}
	switch value := f.read().(type) {
	case nil:
		*p = nil
	case Map:
		*p = value
	default:
		f.fail(*p, value)
	}
}

// symbols is a field that may hold several symbols: an array, or a single one written bare (1.4,
// "multiple").
func symbols(f *fields, p *[]Symbol) {
	if f.writing {
		if len(*p) == 0 {
			f.write(nil)
			return
		}
		array := make(Array, len(*p))
		for i, symbol := range *p {
			array[i] = symbol
		}
		f.write(array)
		return
	}
	*p = nil
	switch value := f.read().(type) {
	case nil:
	case Symbol:
		*p = []Symbol{value}
	case Array:
		for _, element := range value {
			symbol, ok := element.(Symbol)
			if !ok {
				f.fail(symbol, element)
				return
			}
			*p = append(*p, symbol)
		}
	default:
		f.fail(*p, value)
	}
}

// nested is a field that is itself a composite of a known type, or absent.
func nested[T any, P interface {
	*T
	Composite
}](f *fields, p *P) {
	if f.writing {
		if *p == nil {
			f.write(nil)
			return
		}
		f.writeComposite(*p)
		return
	}
	value := f.read()
	if value == nil {
		*p = nil
		return
	}
	*p = new(T)
	if err := compose(value, *p); err != nil && f.err == nil {
		f.err = err
	}
}

func (f *fields) writeComposite(c Composite) {
	value, err := describe(c)
	if err != nil && f.err == nil {
		f.err = err
	}
	f.write(value)
}
