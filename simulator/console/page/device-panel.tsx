import type { ComponentChildren, JSX } from 'preact'
import { textsOf } from '../../../protocol/ui/form.ts'
import { attempt } from '../../../protocol/ui/notices.tsx'
import { nameOf, sentenceOf } from '../../../protocol/ui/picture-model.ts'
import { ActLine } from './acts-view.tsx'
import { ActiveFaults, FaultForm } from './faults-view.tsx'
import { acts, ask, hardware, picture, selected, state } from './store.ts'

/** The actions for the selected device, or for the whole hub. */
export function DevicePanel(): JSX.Element {
  const id = selected.value
  const sentence = id === null ? undefined : sentenceOf(picture.value!, id)
  if (id === null || sentence === undefined) return <WholeHub />
  const owner = hardware.value?.controllers.find(({ devices }) =>
    devices.some(({ kind, number }) => `${kind}-${number}` === id),
  )
  const own = acts.value
    .filter(({ device }) => device === id)
    .slice(-5)
    .toReversed()
  const faults = state.value!.faults.filter(({ target }) => target === id)
  return (
    <div class="grid gap-3" key={id}>
      <div>
        <h2 class="text-lg font-semibold" tabindex={-1}>
          {nameOf(id)}
        </h2>
        <p data-sentence-of={id}>{sentence}.</p>
        {owner && (
          <p class="quiet text-sm">
            On the line of{' '}
            <button class="link" onClick={() => void (selected.value = owner.id)}>
              controller {owner.id}
            </button>
          </p>
        )}
      </div>
      <Hands id={id} />
      {faults.length > 0 && <ActiveFaults faults={faults} />}
      <details class="collapse collapse-arrow border border-base-300">
        <summary class="collapse-title font-medium py-3 min-h-0">Raise a fault here</summary>
        <div class="collapse-content">
          <FaultForm target={id} />
        </div>
      </details>
      <div>
        <h3 class="font-medium">Last actions</h3>
        {own.length === 0 && <p class="quiet text-sm">None yet.</p>}
        <ol>
          {own.map((act) => (
            <ActLine key={act.n} act={act} withDevice={false} />
          ))}
        </ol>
      </div>
    </div>
  )
}

function Do({
  what,
  path,
  body,
  children,
}: {
  what: string
  path: string
  body: object
  children: ComponentChildren
}): JSX.Element {
  return (
    <button class="btn btn-sm" onClick={() => void attempt(what, () => ask('POST', path, body))}>
      {children}
    </button>
  )
}

const Act = ({
  action,
  target,
  children,
  ...rest
}: {
  action: string
  target: string
  children: string
  units?: number
}): JSX.Element => (
  <Do what={`${nameOf(target)}: ${children.toLowerCase()}`} path="/act" body={{ action, target, ...rest }}>
    {children}
  </Do>
)

const Force = ({ target }: { target: string }): JSX.Element => (
  <Do what={`${nameOf(target)}: force`} path="/faults" body={{ type: 'door_forced', target }}>
    Force it open
  </Do>
)

/** The actions of a person in the room for this device. */
function Hands({ id }: { id: string }): JSX.Element | null {
  const kind = /^(bin|cabinet|fridge)-/.exec(id)?.[1]
  if (kind === 'bin')
    return (
      <div class="flex flex-wrap gap-2">
        <Act action="take_items" target={id}>
          Take everything
        </Act>
        <Act action="take_items" target={id} units={1}>
          Take one
        </Act>
        <Act action="put_items" target={id} units={1}>
          Put something in
        </Act>
        <Act action="close_door" target={id}>
          Push the door shut
        </Act>
        <Do
          what={`${nameOf(id)}: hold the door`}
          path="/faults"
          body={{ type: 'obstructed_door', target: id, for_ms: 10_000 }}
        >
          Hold the closing door for 10 s
        </Do>
        <Force target={id} />
      </div>
    )
  if (kind === 'cabinet') return <Shelves id={id} />
  if (kind === 'fridge') return null
  if (hardware.value?.controllers.some((one) => one.id === id)) return <Board id={id} />
  return (
    <div class="flex flex-wrap gap-2">
      <Act action="open_door" target={id}>
        Open it
      </Act>
      <Act action="close_door" target={id}>
        Close it
      </Act>
      <Force target={id} />
    </div>
  )
}

function Board({ id }: { id: string }): JSX.Element {
  const board = state.value!.controllers.find(({ controller }) => controller === id)
  return (
    <>
      <p class="quiet text-sm break-all">
        Port {board?.port}; {board?.sessions} {board?.sessions === 1 ? 'host has' : 'hosts have'} begun a
        session.
      </p>
      <div class="flex flex-wrap gap-2">
        <Act action="press" target={id}>
          Press its reset button
        </Act>
        {board?.powered ? (
          <>
            <Do what={`${id}: power off`} path="/power" body={{ state: 'off', controller: id }}>
              Power off
            </Do>
            <Do what={`${id}: power off`} path="/power" body={{ state: 'off', controller: id, for_ms: 5000 }}>
              Power off for 5 s
            </Do>
          </>
        ) : (
          <Do what={`${id}: power on`} path="/power" body={{ state: 'on', controller: id }}>
            Power on
          </Do>
        )}
      </div>
    </>
  )
}

function Shelves({ id }: { id: string }): JSX.Element {
  const cabinet = picture.value!.cabinets.find((one) => one.id === id)!
  function restock(event: SubmitEvent): void {
    const { place = '', product: typed = '', units } = textsOf(event)
    const [shelf, row] = place.split('-').map(Number)
    const product = Number(typed)
    const body = {
      action: 'restock',
      target: id,
      shelf,
      row,
      units: Number(units),
      ...(product > 0 && { product_id: product }),
    }
    void attempt(`Restock ${nameOf(id)}`, () => ask('POST', '/act', body))
  }
  return (
    <form class="grid grid-cols-3 gap-2 items-end" onSubmit={restock}>
      <label class="grid gap-1 text-sm col-span-3">
        Row
        <select name="place" class="select select-sm w-full">
          {cabinet.shelves.flatMap(({ shelf, rows }) =>
            rows.map(({ row, units, depth, product }) => (
              <option key={`${shelf}-${row}`} value={`${shelf}-${row}`}>
                {`shelf ${shelf}, row ${row}: ${units} of ${depth ?? '?'}${product ? `, ${product}` : ''}`}
              </option>
            )),
          )}
        </select>
      </label>
      <label class="grid gap-1 text-sm">
        Units
        <input
          name="units"
          type="number"
          min="1"
          max="60"
          defaultValue="1"
          class="input input-sm w-full"
          required
        />
      </label>
      <label class="grid gap-1 text-sm">
        Product
        <input name="product" type="number" min="1" placeholder="as it is" class="input input-sm w-full" />
      </label>
      <button class="btn btn-sm">Put in</button>
    </form>
  )
}

function WholeHub(): JSX.Element {
  const { controllers, faults, last_actuation } = state.value!
  const powered = controllers.filter((one) => one.powered).length
  const connected = controllers.filter((one) => one.connected).length
  return (
    <div class="grid gap-3">
      <h2 class="text-lg font-semibold">Hub {state.value!.hub_id}</h2>
      <p>
        {powered} of {controllers.length} boards have power, {connected} speak with the hub. {last_actuation}{' '}
        physical acts so far.
      </p>
      <p class="quiet text-sm">Touch a device in the picture to see its state and its actions.</p>
      <div class="flex flex-wrap gap-2">
        <Do what="Power off" path="/power" body={{ state: 'off' }}>
          Power off
        </Do>
        <Do what="Power on" path="/power" body={{ state: 'on' }}>
          Power on
        </Do>
        <Do what="Power cut" path="/power" body={{ state: 'off', for_ms: 5000 }}>
          Power off for 5 s
        </Do>
      </div>
      {faults.length > 0 && (
        <div>
          <h3 class="font-medium">Active faults</h3>
          <ActiveFaults faults={faults} />
        </div>
      )}
    </div>
  )
}
