import { signal } from '@preact/signals'
import { ScanBarcode } from 'lucide'
import type { JSX } from 'preact'
import { searchText } from '../../../protocol/model/search-text.ts'
import { textsOf } from '../../../protocol/ui/form.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { say } from '../../../protocol/ui/notices.tsx'
import { keyOf, openRow, type Facing } from './counts.ts'
import { showDevice } from './show.ts'
import { state, view } from './store.ts'

/** The browser's own barcode reader, if it has one (only on https pages, or from this machine). */
declare class BarcodeDetector {
  constructor(options: { formats: string[] })
  detect(image: ImageBitmap): Promise<{ rawValue: string }[]>
}

const FORMATS = ['upc_a', 'upc_e', 'ean_13', 'ean_8']

/** Matching rows, if there are several. */
const found = signal<readonly Facing[]>([])

/** An EAN-13 that starts with 0 is the same number as a UPC, and a field for numbers drops zeros at the beginning. */
const plain = (code: string): string => code.replace(/^0+/, '')

/** The text is a barcode, not a number of units. */
export const isBarcode = (text: string): boolean => /^\d{8,14}$/.test(text)

/** Rows that a search has added to the refill walk. */
export const foundInWalk = signal<readonly string[]>([])

/** The rows for a typed or scanned text: a barcode, or a part of a name. */
function rowsOf(sought: string, stock: readonly Facing[]): Facing[] {
  const text = searchText(sought)
  if (text === '') return []
  if (isBarcode(text)) return stock.filter(({ upc }) => upc !== null && plain(upc) === plain(text))
  return stock.filter(({ name }) => name != null && searchText(name).includes(text))
}

function show(row: Facing): void {
  found.value = []
  if (view.value !== 'refill') return showDevice(`cabinet-${row.location.cabinet}`, keyOf(row))
  foundInWalk.value = [...foundInWalk.value, keyOf(row)]
  openRow(keyOf(row))
}

/** Opens the row with a barcode or a name, or lists the rows. */
export function findRow(sought: string): void {
  const rows = rowsOf(sought, state.value!.stock)
  if (rows.length === 1) return show(rows[0]!)
  found.value = rows
  if (rows.length === 0) say(`No row has “${sought.trim()}”.`, true)
}

async function read(file: File | undefined): Promise<void> {
  if (!file) return
  try {
    const codes = await new BarcodeDetector({ formats: FORMATS }).detect(await createImageBitmap(file))
    if (codes[0] === undefined)
      say('No barcode can be read in the picture: closer, and with more light.', true)
    else findRow(codes[0].rawValue)
  } catch (error) {
    say(`The picture could not be read: ${error instanceof Error ? error.message : String(error)}`, true)
  }
}

/** Finds the row of a product for a count or restock: by name, keyboard scanner or the telephone's camera. */
export function FindRow(): JSX.Element {
  return (
    <div class="grid gap-2">
      <form
        class="flex flex-wrap gap-2 items-end"
        aria-label="Find a row"
        onSubmit={(event) => findRow(textsOf(event)['sought'] ?? '')}
      >
        <label class="grid gap-1 text-sm grow">
          Count or restock: name or barcode
          <input name="sought" type="search" class="input input-sm w-full" required />
        </label>
        <button class="btn btn-sm">Find</button>
        {'BarcodeDetector' in globalThis && (
          <label class="btn btn-sm focus-within:outline-2">
            <Icon icon={ScanBarcode} /> Scan
            <input
              type="file"
              accept="image/*"
              capture="environment"
              class="sr-only"
              aria-label="Scan a barcode with the camera"
              onChange={(event) => {
                const input = event.currentTarget
                void read(input.files?.[0]).finally(() => void (input.value = ''))
              }}
            />
          </label>
        )}
      </form>
      {found.value.length > 1 && (
        <ul class="grid gap-1" aria-label="Rows found">
          {found.value.map((row) => (
            <li key={keyOf(row)}>
              <button class="link text-left text-sm touch" onClick={() => show(row)}>
                Row {keyOf(row)}: {row.name}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
