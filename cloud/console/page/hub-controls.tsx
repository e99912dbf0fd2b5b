import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { counted } from '../../../protocol/model/counted.ts'
import { placeText } from '../../../protocol/model/subject.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { sentenceOf } from '../../../protocol/ui/picture-model.ts'
import { time, title, words } from './format.ts'
import { type HubView, pictureOf } from './hub-view.ts'
import { HeldAct, Link } from './parts.tsx'
import { ask, can } from './session.ts'

/** A button that the person must hold, because it moves hardware or changes what is sold. */
const Act = (props: { text: string; about: string; run: () => Promise<unknown> }): JSX.Element => (
  <HeldAct does={`${props.text}: ${props.about}`} run={props.run}>
    {props.text}
  </HeldAct>
)

const binActs = [
  ['Open the door', 'open_bin'],
  ['Close the door', 'close_bin'],
  ['Raise the lift', 'raise_bin'],
  ['Lower the lift', 'lower_bin'],
  ['Reconnect its board', 'reconnect_bin'],
] as const

const fridgeActs = [
  ['Lock all doors', 'close_fridge'],
  ['Reconnect its board', 'reconnect_fridge'],
] as const

/** The device that is selected in the picture, with its controls. */
export function DevicePanel({ hub, device }: { hub: HubView; device: string }): JSX.Element {
  const [, kind, text] = /^(bin|fridge|cabinet)-(\d+)$/.exec(device) ?? []
  const number = Number(text)
  const mayAct = can('controls:write', hub.id)
  return (
    <div class="grid gap-3">
      <p>{sentenceOf(pictureOf(hub), device)}.</p>
      {kind === 'bin' && <BinFacts hub={hub} bin={number} />}
      {mayAct && (
        <div class="flex flex-wrap gap-2">
          {kind === 'bin' && <BinActs hub={hub} bin={number} isEnabled={isEnabled(hub, 'bins', number)} />}
          {kind === 'cabinet' && <RowActs key={number} hub={hub} cabinet={number} />}
          {kind === 'fridge' && (
            <FridgeActs hub={hub} fridge={number} isEnabled={isEnabled(hub, 'fridges', number)} />
          )}
          {device.startsWith('fridge_') && <FridgeDoor hub={hub.id} door={device} />}
        </div>
      )}
      {device === 'main' && can('hubs:write', hub.id) && <MainDoor hub={hub.id} />}
      {mayAct && <p class="text-sm quiet">Hold a button for a second. By keyboard, press it twice.</p>}
      {kind === 'cabinet' && <Rows hub={hub} cabinet={number} />}
    </div>
  )
}

function isEnabled({ health }: HubView, list: 'bins' | 'fridges', number: number): boolean {
  if (list === 'bins') return health.bins.find(({ bin_number }) => bin_number === number)?.enabled ?? false
  return health.fridges.find(({ fridge_number }) => fridge_number === number)?.enabled ?? false
}

function BinFacts({ hub, bin }: { hub: HubView; bin: number }): JSX.Element | null {
  const order = hub.health.bins.find(({ bin_number }) => bin_number === bin)?.order_id
  if (order == null || !can('orders:read', hub.id)) return null
  return (
    <p>
      It serves{' '}
      <Link to={`/orders/${order}`} class="link touch">
        order {order}
      </Link>
      .
    </p>
  )
}

function BinActs({ hub, bin, isEnabled }: { hub: HubView; bin: number; isEnabled: boolean }): JSX.Element {
  const about = `bin ${bin}`
  const query = { hub: hub.id, bin }
  return (
    <>
      {binActs.map(([text, name]) => (
        <Act
          key={name}
          text={text}
          about={about}
          run={() =>
            name === 'open_bin'
              ? ask('POST /owners/controls/open_bin', { query: { ...query, confirm: false } })
              : ask(`POST /owners/controls/${name}`, { query })
          }
        />
      ))}
      <Act
        text="Open and close 3 times"
        about={about}
        run={() => ask('POST /owners/controls/cycle_bin', { query: { ...query, num_cycles: 3 } })}
      />
      <Act
        text={isEnabled ? 'Take out of service' : 'Put into service'}
        about={about}
        run={() => ask(`POST /owners/controls/${isEnabled ? 'disable' : 'enable'}_bin`, { query })}
      />
      {!hub.fleet.online &&
        (['disable', 'enable'] as const).map((what) => (
          <Act
            key={what}
            text={what === 'disable' ? 'Take out of service over SSH' : 'Put into service over SSH'}
            about={about}
            run={() => overSsh(what, query)}
          />
        ))}
    </>
  )
}

/** Works while the hub does not answer. It restarts the hub's service. */
async function overSsh(what: 'enable' | 'disable', query: { hub: number; bin: number }): Promise<void> {
  const { result } = await ask(`POST /owners/controls/${what}_bin_ssh`, { query })
  if (!result.success) throw new Error(result.error)
}

interface FridgeProps {
  hub: HubView
  fridge: number
  isEnabled: boolean
}

function FridgeActs({ hub, fridge, isEnabled }: FridgeProps): JSX.Element {
  const about = `fridge ${fridge}`
  const query = { hub: hub.id, fridge }
  return (
    <>
      {fridgeActs.map(([text, name]) => (
        <Act
          key={name}
          text={text}
          about={about}
          run={() => ask(`POST /owners/controls/${name}`, { query })}
        />
      ))}
      <Act
        text={isEnabled ? 'Stop selling from it' : 'Sell from it again'}
        about={about}
        run={() => ask(`POST /owners/controls/${isEnabled ? 'disable' : 'enable'}_fridge`, { query })}
      />
    </>
  )
}

function FridgeDoor({ hub, door }: { hub: number; door: string }): JSX.Element {
  const [, fridge, side] = /^fridge_(\d+)_(left|middle|right)$/.exec(door)!
  const endpoint = `POST /owners/controls/open_fridge_${side as 'left' | 'middle' | 'right'}` as const
  return (
    <Act
      text="Unlock"
      about={`fridge ${fridge}, ${side} door`}
      run={() => ask(endpoint, { query: { hub, fridge: Number(fridge) } })}
    />
  )
}

const MainDoor = ({ hub }: { hub: number }): JSX.Element => (
  <Act
    text="Unlock the main door"
    about="it locks again automatically"
    run={() => ask('POST /owners/request_door_open/', { query: { hub_id: hub } })}
  />
)

/** A test of one row, and its block. */
function RowActs({ hub, cabinet }: { hub: HubView; cabinet: number }): JSX.Element | null {
  const rows = (hub.layout[cabinet]?.shelves ?? []).flatMap(({ shelf_number: shelf, total_rows }) =>
    Array.from({ length: total_rows }, (_, index) => ({ cabinet, shelf, row: index + 1 })),
  )
  const [chosen, choose] = useState(0)
  const at = rows[chosen]
  if (!at) return null
  const query = { hub: hub.id, ...at }
  const facing = hub.facings.find((one) => placeText(one) === placeText(at))
  // Without the right to read the stock it is unknown whether the row is blocked.
  const blocks = facing ? ([facing.blocked ? 'unblock' : 'block'] as const) : (['block', 'unblock'] as const)
  return (
    <>
      <label class="grid gap-1 text-sm w-full">
        Row
        <select
          class="select w-full"
          value={chosen}
          onChange={({ currentTarget }) => choose(Number(currentTarget.value))}
        >
          {rows.map((one, index) => (
            <option key={placeText(one)} value={index}>
              {[placeText(one), productAt(hub, one)].filter(Boolean).join(' ')}
            </option>
          ))}
        </select>
      </label>
      <Act text="Turn it once" about={`row ${placeText(at)}`} run={() => testRow(query)} />
      {blocks.map((what) => (
        <Act
          key={what}
          text={what === 'block' ? 'Block' : 'Unblock'}
          about={`row ${placeText(at)}`}
          run={() => ask(`POST /owners/controls/${what}_row`, { query })}
        />
      ))}
    </>
  )
}

type Place = Pick<HubView['facings'][number], 'cabinet' | 'shelf' | 'row'>

/** The name of the product in a row, if the role includes it. */
function productAt({ facings, products }: HubView, at: Place): string | undefined {
  const id = facings.find((one) => placeText(one) === placeText(at))?.product_id
  return products.find((one) => one.id === id)?.name
}

async function testRow(query: Place & { hub: number }): Promise<void> {
  const { result } = await ask('POST /owners/controls/test_dispense', { query })
  const { drops, bin } = result.response_data
  const seen =
    drops === 0
      ? 'No unit was seen to fall.'
      : `${counted(drops, 'unit')} fell into bin ${bin}. A person must empty it.`
  say(seen, drops === 0)
}

/** The rows of a cabinet with their products. */
function Rows({ hub, cabinet }: { hub: HubView; cabinet: number }): JSX.Element {
  const rows = hub.facings.filter((facing) => facing.cabinet === cabinet && facing.product_id !== null)
  return (
    <>
      <ul class="text-sm">
        {rows.map(({ shelf, row, product_id, quantity, capacity, blocked, blocked_reason }) => (
          <li key={`${shelf}/${row}`} class="flex gap-2 py-1 border-b border-base-300">
            <span class="quiet tabular-nums">{`${cabinet}/${shelf}/${row}`}</span>
            <span class="grow min-w-0 break-words">
              {hub.products.find(({ id }) => id === product_id)?.name ?? `product ${product_id}`}
              {blocked && <span class="bad"> blocked: {words(blocked_reason ?? 'unknown')}</span>}
            </span>
            <span class="tabular-nums">
              {quantity} of {capacity}
            </span>
          </li>
        ))}
      </ul>
      {can('inventory:write', hub.id) && (
        <Link to={`/planogram/${hub.id}`} class="btn btn-sm justify-self-start">
          Count and unblock rows
        </Link>
      )}
    </>
  )
}

/** The controls of the hub as a whole. */
export function HubControls({ hub }: { hub: HubView }): JSX.Element {
  const { id, fleet, operations } = hub
  const isPaused = fleet.hub_status === 'paused'
  return (
    <div class="grid gap-3">
      <h2 class="font-semibold">The whole hub</h2>
      <p class="text-sm quiet">Touch a device in the picture for its state and its controls.</p>
      {can('controls:write', id) && (
        <div class="flex flex-wrap gap-2">
          <Act
            text={isPaused ? 'Take orders again' : 'Stop new orders'}
            about={fleet.name}
            run={() =>
              ask(`POST /owners/controls/${isPaused ? 'resume' : 'stop'}_orders`, { query: { hub: id } })
            }
          />
          {can('hubs:write', id) && <MainDoor hub={id} />}
        </div>
      )}
      {operations.map((operation) => (
        <div key={operation.id} class="border-l-4 border-warning pl-3" data-operation={operation.id}>
          <p>
            Did it happen? {title(operation.action)} at {words(operation.device)},{' '}
            {time(operation.started_at, hub.info.timezone)}
            {operation.order_id !== null && `, order ${operation.order_id}`}.
          </p>
          {can('controls:write', id) && (
            <div class="flex flex-wrap gap-2 mt-1">
              {([true, false] as const).map((happened) => (
                <Act
                  key={String(happened)}
                  text={happened ? 'Yes, it happened' : 'No'}
                  about={`${operation.action} at ${operation.device}`}
                  run={() =>
                    ask('POST /owners/operations/{operation_id}/settle', {
                      params: { operation_id: operation.id },
                      body: { happened },
                    })
                  }
                />
              ))}
            </div>
          )}
        </div>
      ))}
    </div>
  )
}
