import { counted } from '../../../protocol/model/counted.ts'
import { Download, Package, Upload } from 'lucide'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { amountOf, amountText, unitsOf } from '../../../protocol/model/money.ts'
import { placeText } from '../../../protocol/model/subject.ts'
import { textsOf } from '../../../protocol/ui/form.ts'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { pause } from '../../../protocol/ui/live.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { saveText } from '../../../protocol/ui/save-text.ts'
import { address, setQuery } from './address.ts'
import { csvLine, csvLines } from '../../platform/csv.ts'
import { rowsOf } from './csv.ts'
import { refresh, useData } from './data.ts'
import { money, words } from './format.ts'
import { applyChange, columns, type Place, readPlaces } from './places.ts'
import { isRunning, once } from './running-acts.ts'
import { act, Card, Heading, Link, Loaded, Nothing } from './parts.tsx'
import { ask, can, imageAt } from './session.ts'
import { type Change, changesOf } from './table-changes.ts'

const views = {
  all: { name: 'All rows', isShown: () => true },
  refill: {
    name: 'To refill',
    isShown: ({ quantity, capacity, blocked }: Place) => blocked || quantity < capacity,
  },
  blocked: { name: 'Blocked', isShown: ({ blocked }: Place) => blocked },
} as const
type View = keyof typeof views

/** The rows of a hub with their products: counts, prices, blocks; import and export. */
export function PlanogramPage({ id }: { id: number }): JSX.Element {
  const { query } = address.value
  const view = (query.get('show') ?? 'all') as View
  const sought = (query.get('search') ?? '').toLowerCase()
  const found = useData(() => readPlaces(id), [id])
  const isShown = (place: Place): boolean =>
    (views[view] ?? views.all).isShown(place) &&
    `${placeText(place)} ${place.name} ${place.upc}`.toLowerCase().includes(sought)
  return (
    <Loaded of={found} missing="There is no such hub">
      {({ hub, places }) => {
        const shown = places.filter(isShown)
        return (
          <>
            <Heading text={`Planogram of ${hub.name}`}>
              <Link to={`/hubs/${id}`} class="btn btn-sm">
                The hub
              </Link>
            </Heading>
            <div class="flex flex-wrap gap-2 mb-3">
              {(Object.keys(views) as View[]).map((name) => (
                <button
                  key={name}
                  class={`btn btn-sm ${name === view ? 'btn-primary' : ''}`}
                  aria-pressed={name === view}
                  onClick={() => setQuery({ show: name === 'all' ? '' : name })}
                >
                  {views[name].name} ({places.filter(views[name].isShown).length})
                </button>
              ))}
              <input
                class="input input-sm grow sm:max-w-64"
                type="search"
                aria-label="Product, UPC or place"
                placeholder="Product, UPC or place"
                value={sought}
                onInput={({ currentTarget }) => setQuery({ search: currentTarget.value })}
              />
            </div>
            {shown.length === 0 && (
              <Card>
                <Nothing>{view === 'refill' ? 'Every row is full.' : 'No row matches.'}</Nothing>
              </Card>
            )}
            <div class="grid gap-3 md:grid-cols-2 2xl:grid-cols-3 items-start">
              {[...new Set(shown.map(({ cabinet }) => cabinet))].map((cabinet) => (
                <Card key={cabinet} title={`Cabinet ${cabinet}`} name={`cabinet-${cabinet}`}>
                  <ul>
                    {shown
                      .filter((place) => place.cabinet === cabinet)
                      .map((place) => (
                        <PlaceLine
                          key={placeText(place)}
                          hub={id}
                          place={place}
                          isRefill={view === 'refill'}
                        />
                      ))}
                  </ul>
                </Card>
              ))}
            </div>
            <Transfer hub={id} name={hub.name} places={places} />
          </>
        )
      }}
    </Loaded>
  )
}

interface LineProps {
  hub: number
  place: Place
  isRefill: boolean
}

function PlaceLine({ hub, place, isRefill }: LineProps): JSX.Element {
  const { name, quantity, capacity, blocked, blocked_reason, price, image_url } = place
  const [isOpen, setOpen] = useState(false)
  const mayWrite = can('inventory:write', hub)
  const isLow = quantity <= capacity / 4
  return (
    <li class="border-b border-base-300 py-2" data-place={placeText(place)}>
      <div class="flex gap-3 items-center">
        {image_url === '' ? (
          <span class="size-10 grid place-items-center quiet">
            <Icon icon={Package} />
          </span>
        ) : (
          <img src={imageAt(image_url)} alt="" loading="lazy" class="size-10 object-contain rounded" />
        )}
        <div class="grow min-w-0">
          <p class="font-medium break-words">{name}</p>
          <p class="text-sm quiet">
            row {placeText(place)}, {money(price, place.currency)}
            {blocked && <span class="bad"> blocked: {words(blocked_reason ?? 'unknown')}</span>}
          </p>
          <progress
            class={`progress h-2 ${quantity === 0 ? 'progress-error' : isLow ? 'progress-warning' : 'progress-info'}`}
            value={quantity}
            max={capacity}
            aria-label={`${name}: ${quantity} of ${capacity}`}
          />
        </div>
        <span class="tabular-nums whitespace-nowrap">
          {quantity} of {capacity}
        </span>
        {mayWrite && !isRefill && (
          <button
            class="btn btn-sm"
            aria-expanded={isOpen}
            aria-label={`Change row ${placeText(place)}`}
            onClick={() => setOpen(!isOpen)}
          >
            Change
          </button>
        )}
      </div>
      {mayWrite && (isOpen || isRefill) && <CountForm hub={hub} place={place} isRefill={isRefill} />}
      {mayWrite && isOpen && !isRefill && <PriceForm place={place} />}
      {isOpen && !isRefill && can('controls:write', hub) && <BlockButton hub={hub} place={place} />}
    </li>
  )
}

/** Counts a row. In the refill list the field has the full row, and the focus goes on to the next row. */
function CountForm({ hub, place, isRefill }: LineProps): JSX.Element {
  const { cabinet, shelf, row, quantity, capacity, blocked, blocked_reason, name } = place
  function save(event: SubmitEvent): void {
    const units = Number(textsOf(event)['count'])
    const form = event.currentTarget as HTMLFormElement
    const next = form.closest('li')?.nextElementSibling?.querySelector<HTMLInputElement>('input[name=count]')
    next?.focus()
    next?.select()
    void act(`Row ${placeText(place)}: ${units} counted`, () =>
      ask('PUT /owners/hubs/facings', { body: { hub_id: hub, cabinet, shelf, row, quantity: units } }),
    )
  }
  return (
    <form class="flex flex-wrap gap-2 items-end mt-2" onSubmit={save}>
      <label class="grid text-sm">
        Units in the row
        <input
          name="count"
          type="number"
          inputMode="numeric"
          class="input w-24"
          min={0}
          max={capacity}
          required
          defaultValue={String(isRefill ? capacity : quantity)}
          aria-label={`Units of ${name} in row ${placeText(place)}`}
        />
      </label>
      <button class="btn">
        {blocked && blocked_reason !== 'blocked_by_person' ? 'Save count and unblock' : 'Save count'}
      </button>
    </form>
  )
}

/** Time in which the hub reports a changed row. */
const REPORT_MS = 500

/** Blocks or unblocks a row at the hub. A row that failed is unblocked by a count, too. */
function BlockButton({ hub, place }: Omit<LineProps, 'isRefill'>): JSX.Element {
  const { cabinet, shelf, row, blocked } = place
  const [endpoint, what] = blocked
    ? (['POST /owners/controls/unblock_row', 'Unblock'] as const)
    : (['POST /owners/controls/block_row', 'Block'] as const)
  return (
    <button
      class="btn mt-2"
      onClick={() =>
        void act(`${what} row ${placeText(place)}`, async () => {
          await ask(endpoint, { query: { hub, cabinet, shelf, row } })
          await pause(REPORT_MS)
        })
      }
    >
      {what} row {placeText(place)}
    </button>
  )
}

function PriceForm({ place }: { place: Place }): JSX.Element {
  const { product_id, name, price, purchase_price, currency } = place
  const params = { product_id }
  function save(event: SubmitEvent): void {
    const texts = textsOf(event)
    const sale = amountOf(texts['price'] ?? '', currency)
    const purchase = amountOf(texts['purchase'] ?? '', currency)
    void act(`Price of ${name}: ${money(sale, currency)}`, async () => {
      if (sale !== price)
        await ask('PUT /owners/product/{product_id}/update_price', { params, body: { price: sale } })
      if (purchase !== purchase_price)
        await ask('PUT /owners/product/{product_id}/update_purchase_price', {
          params,
          body: { purchase_price: purchase },
        })
    })
  }
  const fields = [
    ['price', 'Price', price],
    ['purchase', 'Purchase price', purchase_price],
  ] as const
  return (
    <form class="flex flex-wrap gap-2 items-end mt-2" onSubmit={save}>
      {fields.map(([field, label, cents]) => (
        <label key={field} class="grid text-sm">
          {label} ({currency})
          <input
            name={field}
            type="number"
            inputMode="decimal"
            step={1 / unitsOf(currency)}
            min={field === 'price' ? 1 / unitsOf(currency) : 0}
            class="input w-28"
            required
            defaultValue={amountText(cents, currency)}
          />
        </label>
      ))}
      <button class="btn">Save prices</button>
    </form>
  )
}

interface TransferProps {
  hub: number
  name: string
  places: readonly Place[]
}

/** Export of the rows as CSV, and import of changed counts and prices. */
function Transfer({ hub, name, places }: TransferProps): JSX.Element {
  const [changes, setChanges] = useState<readonly Change[] | null>(null)
  async function read(file: File | undefined): Promise<void> {
    if (!file) return
    try {
      setChanges(changesOf(places, rowsOf(await file.text())))
    } catch (error) {
      say((error as Error).message, true)
    }
  }
  return (
    <Card title="Import and export" class="mt-3" name="transfer">
      <p class="text-sm quiet mb-2">
        A table has a line for each row. Change <code>quantity</code>, <code>price</code> and{' '}
        <code>purchase_price</code> in it, and import it. Prices are in the smallest unit of the currency,
        such as cents.
      </p>
      <div class="flex flex-wrap gap-2 items-center">
        <button
          class="btn btn-sm"
          onClick={() =>
            saveText(
              csvLine(columns) + csvLines(columns, places),
              `${name.toLowerCase().replaceAll(' ', '-')}.csv`,
              'text/csv',
            )
          }
        >
          <Icon icon={Download} /> Export as CSV
        </button>
        {can('inventory:write', hub) && (
          <label class="btn btn-sm">
            <Icon icon={Upload} /> Import a CSV
            <input
              type="file"
              accept=".csv,text/csv"
              class="sr-only"
              onChange={({ currentTarget }) => {
                void read(currentTarget.files?.[0])
                currentTarget.value = ''
              }}
            />
          </label>
        )}
      </div>
      {changes && <ImportedChanges hub={hub} changes={changes} onChange={setChanges} />}
    </Card>
  )
}

interface ImportedProps {
  hub: number
  changes: readonly Change[]
  onChange: (changes: readonly Change[] | null) => void
}

/** The changes of an imported table, before a person applies them. */
function ImportedChanges({ hub, changes, onChange }: ImportedProps): JSX.Element {
  const applying = `table of hub ${hub}`
  const isApplying = isRunning(applying)
  async function apply(): Promise<void> {
    for (const [index, change] of changes.entries())
      try {
        await applyChange(change, hub)
      } catch (error) {
        onChange(changes.slice(index))
        refresh()
        return say(`${change.text}: ${(error as Error).message}`, true)
      }
    say(`${counted(changes.length, 'change')}: done.`)
    onChange(null)
    refresh()
  }
  if (changes.length === 0) return <p class="mt-2">The table changes nothing.</p>
  return (
    <div class="mt-3">
      <ul class="text-sm list-disc pl-5 max-h-60 overflow-y-auto" tabindex={0} aria-label="Changes">
        {changes.map(({ key, text }) => (
          <li key={key}>{text}</li>
        ))}
      </ul>
      <div class="flex flex-wrap gap-2 mt-2">
        <HoldButton class="btn-primary btn-sm" isBusy={isApplying} onHeld={() => void once(applying, apply)}>
          {`Apply ${counted(changes.length, 'change')}`}
        </HoldButton>
        <button class="btn btn-sm" disabled={isApplying} onClick={() => onChange(null)}>
          Cancel
        </button>
      </div>
    </div>
  )
}
