"""Operations on what people and models judge: studies, judgments, reviews."""
