"""Pictures and video as tokens, and the FLOP of the tower that reads them; no language model."""

from formulae.flop_parts import FORWARD_ONLY, FlopPart, Training, weight_part
from formulae.flop_stack import stack_parts
from formulae.model_description import VisionEncoder
from formulae.units import QuantityError, require_positive, require_range


def patches_of_image(height_px: int, width_px: int, *, patch_px: int) -> int:
    """Patches of one picture, the sequence of its tower.

    patches = floor(height / patch) * floor(width / patch)

    Args:
        height_px: height, pixels, >= patch_px.
        width_px: width, pixels, >= patch_px.
        patch_px: side of one patch, pixels, >= 1.

    Returns:
        Patches, a count.

    Raises:
        QuantityError: the picture is smaller than one patch.

    Source: Dosovitskiy et al. 2020, arXiv:2010.11929, section 3.1.

    >>> patches_of_image(336, 336, patch_px=14)
    576
    """
    require_positive("patch_px (pixels)", patch_px)
    patches = (height_px // patch_px) * (width_px // patch_px)
    if patches < 1:
        raise QuantityError(
            f"a picture of {height_px} x {width_px} px holds no {patch_px} px patch"
        )
    return patches


def video_tokens(frames: float, tokens_per_frame: float) -> float:
    """Tokens of a video in the language model.

    tokens = frames * tokens_per_frame

    Args:
        frames: sampled frames, count, > 0.
        tokens_per_frame: after merging patches, > 0.

    Returns:
        Tokens, a count.

    Source: definition; frames as pictures: Lin et al. 2023, arXiv:2311.10122, section 3.

    >>> video_tokens(32, 144)
    4608
    """
    return require_positive("frames", frames) * require_positive(
        "tokens_per_frame", tokens_per_frame
    )


def visual_token_fraction(*, text_tokens: float, visual_tokens: float) -> float:
    """Share of the tokens of a language model that come from pictures or video.

    fraction = visual / (text + visual)

    The tokens of the run are then text + visual: visual tokens pass the language model like any.

    Args:
        text_tokens: trained text tokens, count, >= 0.
        visual_tokens: trained visual tokens, count, >= 0.

    Returns:
        Fraction, 0 to 1.

    Raises:
        QuantityError: there are no tokens at all.

    Source: definition.

    >>> visual_token_fraction(text_tokens=3e12, visual_tokens=1e12)
    0.25
    """
    whole = require_range("text_tokens", text_tokens, low=0) + require_range(
        "visual_tokens", visual_tokens, low=0
    )
    return visual_tokens / require_positive("text_tokens + visual_tokens", whole)


def vision_parts(vision: VisionEncoder) -> tuple[FlopPart, ...]:
    """The parts of a vision tower, per trained token of the language model.

    visual fraction * patches per token * 6 N_vit (2 N_vit frozen), its scores with a = 1, and
    visual fraction * 6 N_projector

    The same pictures cost again as tokens of the language model: those are among its tokens.

    Args:
        vision: the tower.

    Returns:
        The parts; none where the visual fraction is not known or zero.

    Source: Dosovitskiy et al. 2020, arXiv:2010.11929, section 3.1; projector: Liu et al. 2023,
    arXiv:2304.08485, section 4.1.

    >>> tower = VisionEncoder(params=3e8, visual_token_fraction=0.2, patches_per_token=4)
    >>> [(part.flop_per_token, part.formula) for part in vision_parts(tower)]
    [(1440000000.0, '0.8 * 6 * N_vit = 0.8 * 6 * 3e+08')]
    >>> vision_parts(VisionEncoder(params=3e8))
    ()
    """
    fraction = vision.visual_token_fraction
    if not fraction:
        return ()
    passes = FORWARD_ONLY if vision.is_frozen else 3.0
    training = Training(
        weight_passes=passes,
        score_passes=passes,
        recomputed_fraction=0.0 if vision.is_frozen else 1.0,
        share=fraction * vision.patches_per_token,
    )
    return (*_tower(vision, training), *_projector(vision, fraction))


def _tower(vision: VisionEncoder, training: Training) -> tuple[FlopPart, ...]:
    """The encoder itself, from its shape or its count."""
    if vision.architecture is not None:
        return stack_parts(
            vision.architecture,
            seq_len=vision.patches_per_image,
            training=training,
            prefix="vision_",
        )
    params = vision.params or 0.0
    return (
        weight_part("vision_encoder", "N_vit", f"{params:g}", weights=params, training=training),
    )


def _projector(vision: VisionEncoder, fraction: float) -> tuple[FlopPart, ...]:
    """The trained projector into the language model."""
    if not vision.projector_params:
        return ()
    return (
        weight_part(
            "vision_projector",
            "N_projector",
            f"{vision.projector_params:g}",
            weights=vision.projector_params,
            training=Training(share=fraction),
        ),
    )
