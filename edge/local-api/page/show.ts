import { focusDevice } from '../../../protocol/ui/picture.tsx'
import { openRow, rowKey } from './counts.ts'
import { selected, state } from './store.ts'

/** Opens the panel of a device and scrolls to it. `row` (`1/2/3`) is opened for a count. */
export function showDevice(id: string, row?: string): void {
  selected.value = id
  if (row !== undefined && state.value?.stock.some(({ location }) => rowKey(location) === row))
    return openRow(row)
  requestAnimationFrame(() => {
    const panel = document.getElementById('device')
    panel?.querySelector<HTMLElement>('h2')?.focus({ preventScroll: true })
    panel?.scrollIntoView({ block: innerWidth < 1024 ? 'start' : 'nearest' })
  })
}

/** Closes the panel of a device; the keyboard focus returns to the device in the picture. */
export function showWholeHub(): void {
  const id = selected.value
  selected.value = null
  if (id !== null) requestAnimationFrame(() => focusDevice(id))
}
