import { signal } from '@preact/signals'
import { Minus, Plus } from 'lucide'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { countProblem } from '../../../protocol/model/counting.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { act, state } from './store.ts'

export type Facing = NonNullable<typeof state.value>['stock'][number]

export const keyOf = ({ location: at }: Facing): string => `${at.cabinet}/${at.shelf}/${at.row}`
/** The row that somebody looks for: its shelf is opened, and it waits for a number. */
const wantedRow = signal<string | null>(null)
export const openRow = (key: string): void => void (wantedRow.value = key)

/** What somebody has typed and not sent yet, by row. */
const typed = signal<ReadonlyMap<string, number>>(new Map())
const setTyped = (key: string, units: number | undefined): void => {
  const next = new Map(typed.value)
  if (units === undefined) next.delete(key)
  else next.set(key, units)
  typed.value = next
}

/** What is unfolded is drawn over some frames, and takes no focus before it is seen. */
function focusWhenShown(input: HTMLInputElement, frames = 60): void {
  input.focus()
  if (document.activeElement !== input && frames > 0)
    return void requestAnimationFrame(() => focusWhenShown(input, frames - 1))
  input.select()
  input.scrollIntoView({ block: 'center' })
}

function Row({ facing }: { facing: Facing }): JSX.Element {
  const { location, product_id, name, quantity, capacity, blocked } = facing
  const key = keyOf(facing)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (wantedRow.value !== key) return
    wantedRow.value = null
    // The shelf stays open until somebody closes it.
    input.current!.closest('details')!.open = true
    focusWhenShown(input.current!)
  }, [wantedRow.value])
  // What is sold meanwhile changes no number that somebody is about to write over, or to confirm.
  const [held, hold] = useState<number>()
  const wanted = typed.value.get(key) ?? held ?? quantity
  const difference = wanted - quantity
  // An empty field, a negative number or more than the row holds is refused, and never taken for another number.
  const problem = Number.isNaN(wanted) ? 'enter a number' : countProblem(wanted, capacity)
  // From what is typed by now: two clicks may come before the page is drawn again.
  const step = (by: 1 | -1): void => {
    const units = typed.value.get(key) ?? wanted
    const from = Number.isNaN(units) ? quantity : units
    setTyped(key, Math.max(0, Math.min(capacity, from + by)))
  }
  async function send(what: string, path: string, units: number): Promise<void> {
    await act(`Row ${key}: ${what}`, path, { location, units })
    setTyped(key, undefined)
    hold(undefined)
  }
  return (
    <li class="py-2 border-b border-base-300" data-row={key}>
      <p class="text-sm">
        <b>Row {location.row}</b> · {name ?? `product ${product_id}`} · {quantity} of {capacity} there
        {blocked && <span class="bad"> · not for sale: {blocked}</span>}
      </p>
      <div
        class="flex flex-wrap items-center gap-2 mt-1"
        onFocusIn={() => hold(wanted)}
        onFocusOut={({ currentTarget, relatedTarget }) => {
          if (!currentTarget.contains(relatedTarget as Node | null)) hold(undefined)
        }}
      >
        <div class="join">
          <button
            class="btn join-item btn-square"
            aria-label={`Row ${key}: one less`}
            onClick={() => step(-1)}
          >
            <Icon icon={Minus} />
          </button>
          <input
            ref={input}
            type="number"
            min="0"
            max={capacity}
            aria-invalid={problem !== undefined}
            inputMode="numeric"
            class="input join-item w-16 text-center"
            aria-label={`Row ${key}: units`}
            value={Number.isNaN(wanted) ? '' : wanted}
            onInput={(event) => setTyped(key, event.currentTarget.valueAsNumber)}
          />
          <button
            class="btn join-item btn-square"
            aria-label={`Row ${key}: one more`}
            onClick={() => step(1)}
          >
            <Icon icon={Plus} />
          </button>
        </div>
        <button
          class="btn"
          disabled={problem !== undefined}
          onClick={() => void send(`counted ${wanted}`, 'stock/count', wanted)}
        >
          Counted {Number.isNaN(wanted) ? '' : wanted}
        </button>
        {problem !== undefined && <span class="bad text-sm">{problem}</span>}
        {problem === undefined && difference > 0 && (
          <button class="btn" onClick={() => void send(`added ${difference}`, 'stock/restock', difference)}>
            Added {difference}
          </button>
        )}
      </div>
    </li>
  )
}

/** Counting and restocking, shelf by shelf. */
export function Shelves({ id }: { id: string }): JSX.Element {
  const cabinet = Number(id.slice('cabinet-'.length))
  const facings = state.value!.stock.filter(({ location }) => location.cabinet === cabinet)
  const shelves = [...new Set(facings.map(({ location }) => location.shelf))].sort(
    (one, other) => one - other,
  )
  if (facings.length === 0) return <p class="quiet">The planogram has nothing in this cabinet.</p>
  return (
    <div class="grid gap-2">
      {shelves.map((shelf) => (
        <details key={shelf} class="collapse collapse-arrow border border-base-300" data-shelf={shelf}>
          <summary class="collapse-title font-medium py-3 min-h-0">Shelf {shelf}</summary>
          <ul class="collapse-content">
            {facings
              .filter(({ location }) => location.shelf === shelf)
              .map((facing) => (
                <Row key={keyOf(facing)} facing={facing} />
              ))}
          </ul>
        </details>
      ))}
    </div>
  )
}
