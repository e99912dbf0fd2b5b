import { ArrowLeft } from 'lucide'
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { entered, type Facing, keyOf, openRow, pending, rowKey } from './counts.ts'
import { FindRow, foundInWalk } from './find-row.tsx'
import { Row } from './shelves.tsx'
import { state } from './store.ts'

/** Rows with room, or blocked, in the order in which a person walks along the shelves. */
export const rowsToRefill = (stock: readonly Facing[]): Facing[] =>
  inOrder(stock.filter(({ quantity, capacity, blocked }) => quantity < capacity || blocked !== null))

const inOrder = (facings: readonly Facing[]): Facing[] =>
  facings.toSorted(
    ({ location: one }, { location: other }) =>
      one.cabinet - other.cabinet || one.shelf - other.shelf || one.row - other.row,
  )

/** Shelf after shelf, row after row. A full row stays in its place until the person leaves the page. */
export function RefillView(): JSX.Element {
  const { stock } = state.value!
  const [own] = useState(() => rowsToRefill(stock).map(keyOf))
  const walk = new Set([...own, ...foundInWalk.value])
  const rows = inOrder(stock.filter((facing) => walk.has(keyOf(facing))))
  const waiting = new Set(pending.value.map(({ location }) => rowKey(location)))
  const isDone = (row: Facing): boolean => entered.value.has(keyOf(row)) || waiting.has(keyOf(row))
  const done = rows.filter(isDone).length
  useEffect(() => {
    const next = rows.find((row) => !isDone(row))
    if (next) openRow(keyOf(next))
    return () => void (foundInWalk.value = [])
  }, [])
  const shelves = [...new Set(rows.map(shelfOf))]
  return (
    <div class="grid gap-3 max-w-2xl mx-auto" data-rows data-refill={`${done}/${rows.length}`}>
      <a href="#" class="btn btn-ghost btn-sm justify-self-start">
        <Icon icon={ArrowLeft} /> The hub
      </a>
      <div class="sticky top-14 z-[5] bg-base-200 py-2">
        <h2 class="text-lg font-semibold">Refill</h2>
        <p class="text-sm" aria-live="polite">
          {done} of {rows.length} rows entered.
          {waiting.size > 0 && ` ${waiting.size} ${waiting.size === 1 ? 'is' : 'are'} not sent yet.`}
          {done === rows.length && waiting.size === 0 && ' Every row is done.'}
        </p>
        <progress
          class="progress progress-primary w-full"
          value={done}
          max={rows.length}
          aria-label="Rows entered"
        />
      </div>
      <FindRow />
      {shelves.map((shelf) => (
        <section key={shelf} class="card bg-base-100 p-3 min-w-0" aria-label={shelf}>
          <h3 class="font-semibold">{shelf}</h3>
          <ul>
            {rows
              .filter((row) => shelfOf(row) === shelf)
              .map((row) => (
                <Row key={keyOf(row)} facing={row} />
              ))}
          </ul>
        </section>
      ))}
    </div>
  )
}

const shelfOf = ({ location }: Facing): string => `Cabinet ${location.cabinet}, shelf ${location.shelf}`
