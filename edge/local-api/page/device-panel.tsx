import { ArrowLeft } from 'lucide'
import type { JSX } from 'preact'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { nameOf, sentenceOf } from '../../../protocol/ui/picture-model.ts'
import { Commands, Do, Held } from './act-buttons.tsx'
import { Shelves } from './shelves.tsx'
import { showWholeHub } from './show.ts'
import { picture, state } from './store.ts'
import { readingText } from './texts.ts'

/** A device: its name, its state, and all actions for it on this page. */
export function DevicePanel({ id }: { id: string }): JSX.Element {
  return (
    <div
      class="grid gap-3"
      key={id}
      onKeyDown={(event) => {
        if (event.key === 'Escape') showWholeHub()
      }}
    >
      <button class="btn btn-ghost btn-sm justify-self-start -ml-2" onClick={showWholeHub}>
        <Icon icon={ArrowLeft} /> The whole hub
      </button>
      <div>
        <h2 class="text-lg font-semibold" tabindex={-1}>
          {nameOf(id)}
        </h2>
        {/* The height fits the longest text, so that the buttons below do not move. */}
        <p class="min-h-[3lh]" data-sentence-of={id}>
          {sentenceOf(picture.value!, id) ?? 'It is not there.'}.
        </p>
      </div>
      <Acts id={id} />
    </div>
  )
}

function Acts({ id }: { id: string }): JSX.Element | null {
  const [, kind, digits] = /^(bin|cabinet|fridge)-(\d)$/.exec(id) ?? []
  if (kind === 'bin') return <BinActs id={id} number={Number(digits)} />
  if (kind === 'cabinet') return <Shelves id={id} />
  if (kind === 'fridge') return <FridgeActs id={id} number={Number(digits)} />
  if (state.value!.links.some(({ controller }) => controller === id)) return <ControllerActs id={id} />
  return (
    <div class="grid grid-cols-1 gap-2">
      <Held device={id} what="Unlock for 30 s" path={`doors/${id}/unlock`} body={{ for_ms: 30_000 }} />
      <Held device={id} what="Unlock for 10 minutes" path={`doors/${id}/unlock`} body={{ for_ms: 600_000 }} />
    </div>
  )
}

function BinActs({ id, number }: { id: string; number: number }): JSX.Element {
  const isHeld = state.value!.held.bins.includes(number)
  return (
    <div class="grid grid-cols-2 gap-2">
      <Commands device={id} of="bins/{bin}/" parameters={{ bin: number }} />
      <Do
        device={id}
        what={isHeld ? 'Use it again' : 'Do not use it'}
        path={`bins/${number}/hold`}
        body={{ held: !isHeld }}
        undo={{ held: isHeld }}
      />
    </div>
  )
}

function FridgeActs({ id, number }: { id: string; number: number }): JSX.Element {
  const fridge = state.value!.health.fridges.find(({ fridge_number }) => fridge_number === number)
  const doors = state.value!.health.doors.filter(({ door }) => door.startsWith(`fridge_${number}_`))
  const reading = state.value!.readings.find(({ fridge_number }) => fridge_number === number)
  return (
    <div class="grid grid-cols-1 gap-2">
      {reading && (
        <p class={`min-h-[3lh] text-sm ${reading.celsius === null ? 'bad' : 'quiet'}`} data-reading>
          {readingText(reading)}
        </p>
      )}
      {doors.map(({ door }) => (
        <Held
          key={door}
          device={door}
          what={`Unlock the ${door.replace(/^fridge_\d_/, '')} door for 30 s`}
          path={`doors/${door}/unlock`}
          body={{ for_ms: 30_000 }}
        />
      ))}
      <Commands device={id} of="fridges/{fridge}/" parameters={{ fridge: number }} />
      {fridge?.shutoff && (
        <Held device={id} what="I have checked the goods: sell again" path={`fridges/${number}/confirm`} />
      )}
    </div>
  )
}

function ControllerActs({ id }: { id: string }): JSX.Element {
  const { links, foreign_controllers: foreign, health } = state.value!
  const link = links.find(({ controller }) => controller === id)!
  const devices = picture.value!.controllers.find((one) => one.id === id)?.devices ?? []
  const bin = health.bins.find(({ bin_number }) => devices.includes(`bin-${bin_number}`))
  const fridge = health.fridges.find(({ fridge_number }) => devices.includes(`fridge-${fridge_number}`))
  const at = bin ? `bins/${bin.bin_number}` : fridge ? `fridges/${fridge.fridge_number}` : undefined
  return (
    <div class="grid gap-2">
      {at && <Do device={id} what="Reconnect" path={`${at}/reconnect`} />}
      <p class="quiet text-sm break-all">
        Port {link.port}. Firmware {link.firmware ?? 'not known'}
        {link.protocol === null ? '' : `, protocol ${link.protocol}`}. It drives{' '}
        {devices.map(nameOf).join(', ')}.
      </p>
      {link.reason !== null && (
        <p class="bad text-sm break-all" data-reason>
          Not connected: {link.reason}.
        </p>
      )}
      {foreign.includes(id) && (
        <Held
          device={id}
          what="It is a spare part for this hub: use it here"
          path={`controllers/${id}/take-over`}
        />
      )}
    </div>
  )
}
