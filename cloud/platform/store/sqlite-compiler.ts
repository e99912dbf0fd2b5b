import {
  ColumnNode,
  PrimitiveValueListNode,
  ReferenceNode,
  SqliteQueryCompiler,
  ValueListNode,
  ValueNode,
  type BinaryOperationNode,
  type OperationNode,
} from 'kysely'
import { tables } from './schema.ts'
import type { Table } from './table.ts'

/**
 * Columns of a few values by which indexes choose their rows. Where a statement compares one of them with a parameter, SQLite
 * looks at the parameter's value to choose an index, and so prepares the statement anew for each run: longer than most of ours
 * take to run. Compared with a value that stands in the text, it is prepared once.
 */
const chosenBy: ReadonlySet<string> = columnsOf(Object.values(tables))

function columnsOf(declared: readonly Table[]): Set<string> {
  const names = declared.flatMap(({ columns, indexes }) =>
    Object.keys(columns).filter((name) =>
      indexes.some(({ where }) => where !== undefined && new RegExp(`\\b${name}\\b`).test(where)),
    ),
  )
  const isOfFew = (name: string): boolean =>
    declared.every(({ columns }) => columns[name] === undefined || columns[name].sql.isOneOf)
  return new Set(names.filter(isOfFew))
}

/** What such a column holds; anything else stays a parameter. */
const isWord = (value: unknown): boolean =>
  Number.isSafeInteger(value) || (typeof value === 'string' && /^[a-z_]{1,40}$/.test(value))

export class SqliteCompiler extends SqliteQueryCompiler {
  protected override visitBinaryOperation(node: BinaryOperationNode): void {
    const { leftOperand, rightOperand } = node
    super.visitBinaryOperation(
      isChosenBy(leftOperand) ? { ...node, rightOperand: spelledOut(rightOperand) } : node,
    )
  }
}

function isChosenBy(node: OperationNode): boolean {
  if (!ReferenceNode.is(node) || !ColumnNode.is(node.column)) return false
  return chosenBy.has(node.column.column.name)
}

function spelledOut(node: OperationNode): OperationNode {
  if (ValueNode.is(node)) return isWord(node.value) ? ValueNode.createImmediate(node.value) : node
  if (PrimitiveValueListNode.is(node))
    return node.values.every(isWord)
      ? ValueListNode.create(node.values.map((value) => ValueNode.createImmediate(value)))
      : node
  return node
}
