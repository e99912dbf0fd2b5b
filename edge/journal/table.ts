/** The storage format of one column. `T`: the type in memory. `Optional`: a new row may omit the value. */
export interface Column<T, Optional extends boolean = boolean> {
  readonly type: 'TEXT' | 'INTEGER' | 'REAL'
  readonly isNullable: boolean
  readonly isOptional: Optional
  /** The value of a new row that omits the column. */
  readonly initial: T | undefined
  /** The column contains estimated cloud time. It is corrected when the estimate was wrong. */
  readonly isInstant: boolean
  /** If it is absent, the stored value is the value in memory. */
  readonly codec?: { read(stored: string | number): T; write(value: T): string | number }
}

export type Stored = string | number | null

type Required<T> = Column<T, false>

const column = <T>(type: Column<T>['type'], more: Partial<Required<T>> = {}): Required<T> => ({
  type,
  isNullable: false,
  isOptional: false,
  initial: undefined,
  isInstant: false,
  ...more,
})

export const text = <T extends string = string>(): Required<T> => column('TEXT')
export const integer = <T extends number = number>(): Required<T> => column('INTEGER')
export const real = (): Required<number> => column('REAL')
/** The hub's estimate of the cloud's time, in milliseconds. */
export const instant = (): Required<number> => column('REAL', { isInstant: true })
export const flag = (): Required<boolean> =>
  column('INTEGER', { codec: { read: (stored) => stored === 1, write: (value) => (value ? 1 : 0) } })
export const json = <T>(): Required<T> =>
  column('TEXT', {
    codec: { read: (stored) => JSON.parse(String(stored)) as T, write: (value) => JSON.stringify(value) },
  })
export const nullable = <T>(of: Required<T>): Column<T | null, true> => ({
  ...of,
  isNullable: true,
  isOptional: true,
  initial: null,
})
export const initially = <T>(initial: NoInfer<T>, of: Required<T>): Column<T, true> => ({
  ...of,
  isOptional: true,
  initial,
})

export type Columns = Record<string, Column<unknown>>

/** The row that the columns describe. */
export type RowOf<T extends { columns: Columns }> = {
  [Name in keyof T['columns']]: T['columns'][Name] extends Column<infer Value> ? Value : never
}

type OptionalOf<C extends Columns> = {
  [Name in keyof C]: C[Name] extends Column<unknown, false> ? never : Name
}[keyof C]

/** A row without a number. Optional columns may be omitted. */
export type NewRow<T extends { columns: Columns }> = Omit<RowOf<T>, 'number' | OptionalOf<T['columns']>> &
  Partial<Pick<RowOf<T>, OptionalOf<T['columns']>>>

/**
 * One table of the journal. The schema, reads and writes follow from this description. A table with a column
 * `number` numbers its rows in the order of insertion.
 */
export interface Table<C extends Columns = Columns, K extends keyof C & string = keyof C & string> {
  readonly name: string
  /** The columns that identify a row. */
  readonly key: readonly K[]
  readonly columns: C
  /** SQL condition of the rows in memory. Other rows are read from the disk when they are requested by key. */
  readonly live?: string
  /** Additional indexes, as `NAME ON TABLE (…)`. */
  readonly indexes?: readonly string[]
}

export const table = <C extends Columns, K extends keyof C & string>(of: Table<C, K>): Table<C, K> => of

/** The statements that create the table and its indexes. */
export function schemaOf({ name, key, columns, indexes = [] }: Table): string {
  const [first] = key
  const isNumbered = 'number' in columns
  const isRowid = key.length === 1 && columns[first!]!.type === 'INTEGER'
  const lines = Object.entries(columns).map(([column, { type, isNullable }]) => {
    const isPrimary = isNumbered ? column === 'number' : isRowid && column === first
    if (isPrimary) return `${column} INTEGER PRIMARY KEY`
    return `${column} ${type}${isNullable ? '' : ' NOT NULL'}`
  })
  const unique = isNumbered ? (first === 'number' ? [] : [`UNIQUE (${key.join(', ')})`]) : []
  const primary = isNumbered || isRowid ? [] : [`PRIMARY KEY (${key.join(', ')})`]
  const kind = isNumbered || isRowid ? 'STRICT' : 'STRICT, WITHOUT ROWID'
  return [
    `CREATE TABLE ${name} (\n  ${[...lines, ...unique, ...primary].join(',\n  ')}\n) ${kind};`,
    ...indexes.map((index) => `CREATE INDEX ${index};`),
  ].join('\n')
}

/** A row of the database as an object in memory. */
export function readRow({ columns }: Pick<Table, 'columns'>, stored: Record<string, Stored>): object {
  const row: Record<string, unknown> = {}
  for (const name in columns) {
    const { codec } = columns[name]!
    const value = stored[name] ?? null
    row[name] = codec === undefined || value === null ? value : codec.read(value)
  }
  return row
}

/** A row as the database stores it. */
export function storedRow({ columns }: Pick<Table, 'columns'>, row: object): Record<string, Stored> {
  const stored: Record<string, Stored> = {}
  for (const name in columns) {
    const { codec } = columns[name]!
    const value = (row as Record<string, Stored>)[name] ?? null
    stored[name] = codec === undefined || value === null ? value : codec.write(value)
  }
  return stored
}

/** The row with defaults for the omitted columns. */
export function completeRow({ columns }: Pick<Table, 'columns'>, row: object): object {
  const complete: Record<string, unknown> = {}
  for (const name in columns) {
    const value = (row as Record<string, unknown>)[name]
    complete[name] = value === undefined ? columns[name]!.initial : value
  }
  return complete
}
