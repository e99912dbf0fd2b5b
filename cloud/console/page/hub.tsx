import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { PictureLegend } from '../../../protocol/ui/picture-cabinet.tsx'
import { nameOf } from '../../../protocol/ui/picture-model.ts'
import { focusDevice, Picture } from '../../../protocol/ui/picture.tsx'
import { pictureColumns } from '../../../protocol/ui/theme.tsx'
import { useData } from './data.ts'
import { DevicePanel, HubControls } from './hub-controls.tsx'
import { type HubView, pictureOf, readHub } from './hub-view.ts'
import { ago } from './format.ts'
import { HubLog } from './logs.tsx'
import { Card, Heading, Link, Loaded, Nothing } from './parts.tsx'
import { Temperatures } from './temperatures.tsx'
import { Problem, stateOf } from './today.tsx'
import { can } from './session.ts'

const selected = signal<string | null>(null)

/** A second touch closes a device. */
function select(id: string): void {
  selected.value = selected.value === id ? null : id
  if (selected.value === null) return focusDevice(id)
  requestAnimationFrame(() => {
    const panel = document.getElementById('device')
    panel?.querySelector<HTMLElement>('h2')?.focus({ preventScroll: true })
    if (pictureColumns() === 2) panel?.scrollIntoView({ block: 'start' })
  })
}

/** A hub: its live picture, its devices with their controls, its problems and temperatures. */
export function HubPage({ id }: { id: number }): JSX.Element {
  const found = useData(() => readHub(id), [id])
  return (
    <Loaded of={found} missing="There is no such hub">
      {(hub) => (
        <>
          <Heading text={hub.info.name}>
            {can('inventory:read', id) && (
              <Link to={`/planogram/${id}`} class="btn btn-sm">
                Planogram and prices
              </Link>
            )}
          </Heading>
          <Facts hub={hub} />
          <div class="grid gap-3 xl:grid-cols-[minmax(0,1fr)_24rem] xl:grid-rows-[auto_1fr] items-start mt-3">
            <Card title="The hub now" name="picture">
              <Picture
                picture={pictureOf(hub)}
                columns={pictureColumns()}
                selected={selected.value}
                onSelect={select}
              />
              <PictureLegend />
            </Card>
            <div class="grid gap-3 min-w-0 xl:row-span-2">
              <div id="device" class="scroll-mt-16">
                <Card>
                  {selected.value === null ? (
                    <HubControls hub={hub} />
                  ) : (
                    <>
                      <div class="flex items-center gap-2 mb-2">
                        <h2 class="font-semibold grow outline-none" tabindex={-1}>
                          {nameOf(selected.value)}
                        </h2>
                        <button class="btn btn-sm btn-ghost" onClick={() => select(selected.value!)}>
                          Close
                        </button>
                      </div>
                      <DevicePanel hub={hub} device={selected.value} />
                    </>
                  )}
                </Card>
              </div>
              <Card title="Problems" name="problems">
                {hub.alarms.length === 0 && <Nothing>Nothing is wrong.</Nothing>}
                <ul class="grid gap-2">
                  {hub.alarms.map((alarm) => (
                    <Problem key={alarm.id} alarm={alarm} />
                  ))}
                </ul>
              </Card>
            </div>
            <div class="grid gap-3 min-w-0">
              <Temperatures hubId={id} timezone={hub.info.timezone} />
              <HubLog hubId={id} timezone={hub.info.timezone} />
            </div>
          </div>
        </>
      )}
    </Loaded>
  )
}

function Facts({ hub: { info, fleet } }: { hub: HubView }): JSX.Element {
  const place = [info.street_address_1, info.city, info.state].filter((text) => text !== '').join(', ')
  const heard = fleet.last_heartbeat === null ? 'never connected' : `last report ${ago(fleet.last_heartbeat)}`
  const facts = [place, info.timezone, heard, fleet.version === null ? '' : `software ${fleet.version}`]
  return (
    <p data-hub-state={fleet.hub_status}>
      The hub <b>{stateOf(fleet)}</b>.{' '}
      <span class="quiet">{facts.filter((text) => text !== '').join(' · ')}</span>
    </p>
  )
}
